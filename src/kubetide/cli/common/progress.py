"""A simulation with its progress on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.runtime.recording.folder import claimed
from kubetide.simulate.run import RunResult, run_simulation
from kubetide.simulate.scenarios.scenario import Scenario, start_of
from kubetide.units.time import Instant, parse_duration


def simulated(scenario: Scenario, *, base: Path, out: Path, seed: int, label: str) -> RunResult:
    """Run a scenario in virtual time, holding its folder; the bar shows how far it is. Raises as ``run_simulation``."""
    start, length = start_of(scenario), parse_duration(scenario.duration)
    is_shown = sys.stderr.isatty()
    with (
        claimed(out),
        click.progressbar(
            length=length // 1_000_000_000, label=label, file=sys.stderr, hidden=not is_shown
        ) as bar,
    ):

        def progress(now: Instant) -> None:
            bar.update((now - start) // 1_000_000_000 - bar.pos)

        return run_simulation(
            scenario,
            base=base,
            out=out,
            seed=seed,
            warn=lambda text: click.echo(f"kubetide: {text}", err=True),
            progress=progress if is_shown else None,
        )
