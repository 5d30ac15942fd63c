"""Two runs on one seed, and the page that sets them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kubetide.cli.common.output import write_results
from kubetide.cli.common.progress import simulated
from kubetide.experiments.divergence import Divergence, first_divergence
from kubetide.experiments.page import SIDES, write_comparison
from kubetide.runtime.recording.folder import write_whole
from kubetide.simulate.run import RunResult
from kubetide.simulate.scenarios.scenario import Scenario

PAGE = "what-if.html"


def run_both(
    both: tuple[Scenario, Scenario], *, base: Path, out: Path, seed: int, changes: Sequence[str]
) -> tuple[RunResult, RunResult, Divergence | None]:
    """Run a scenario as it is and with changes, and write the page; return both, and where they part.

    Raises: Abort where one was interrupted; as ``run_simulation``.
    """
    results = []
    for title, one, folder in zip(SIDES, both, folders_in(out), strict=True):
        result = simulated(one, base=base, out=folder, seed=seed, label=title)
        write_results(result, folder)
        results.append(result)
        if result.interrupted:
            raise click.Abort
    before, after = results
    differs = first_divergence(before.timeline.marks, after.timeline.marks, folders_in(out))
    write_whole(out / PAGE, lambda path: write_comparison(path, before, after, differs, changes))
    return before, after, differs


def folders_in(out: Path) -> tuple[Path, Path]:
    """Return where each of the runs is."""
    return out / "as-it-is", out / "changed"
