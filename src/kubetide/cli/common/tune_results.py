"""What `kubetide tune` leaves and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kubetide.cli.common.comparison import PAGE, run_both
from kubetide.experiments.changes import with_changes
from kubetide.experiments.tuning.answer import (
    is_within_spread,
    judged_table,
    patch_of,
    settings_yaml,
    trials_csv,
)
from kubetide.experiments.tuning.goal import Constraint, TuneError
from kubetide.experiments.tuning.knobs import Knob
from kubetide.experiments.tuning.trials import Found
from kubetide.runtime.recording.folder import write_bytes_whole
from kubetide.simulate.outcome.table import aligned, decimal, printable
from kubetide.simulate.scenarios.scenario import Scenario

_PATCH, _SETTINGS, _TRIALS, _COMPARED = "patch.yaml", "settings.yaml", "trials.csv", "what-if"


def write(
    out: Path,
    found: Found,
    knobs: Sequence[Knob],
    minimize: str,
    constraints: Sequence[Constraint],
    path: Path,
    judged_on: Scenario,
    seed: int,
) -> None:
    """Write the trials and, where there is a result, patch, settings and the page of the comparison.

    Args:
        path: The scenario's file.
        judged_on, seed: The first run that the result was judged on.
    Raises: TuneError where that fails.
    """
    files = {_TRIALS: trials_csv(knobs, minimize, constraints, found.trials)}
    for name in (_PATCH, _SETTINGS):
        (out / name).unlink(missing_ok=True)
    if found.best is not None:
        sets = [f"{knob.name}={value}" for knob, value in zip(knobs, found.best.values, strict=True)]
        changed = with_changes(path, judged_on, sets=sets, patches=())
        files[_PATCH] = patch_of(judged_on, changed, path.parent).encode()
        files[_SETTINGS] = settings_yaml(knobs, found.best.values).encode()
        if found.after:
            run_both((judged_on, changed), base=path.parent, out=out / _COMPARED, seed=seed, changes=sets)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if content:
                write_bytes_whole(out / name, content)
    except OSError as error:
        raise TuneError(
            f"cannot write under {out}: {error.strerror}; free space there, and go on with --resume"
        ) from error


def show(
    name: str,
    found: Found,
    knobs: Sequence[Knob],
    minimize: str,
    constraints: Sequence[Constraint],
    out: Path,
) -> None:
    """Print what was found, and what it brings on the runs that the search has not seen."""
    feasible = sum(trial.feasible for trial in found.trials)
    keeps = ", ".join(constraint.text for constraint in constraints)
    runs = len(found.baseline)
    click.echo(
        f"{printable(name)}   {len(found.trials)} combinations tried on {runs} runs; {feasible} keep {printable(keeps)}"
    )
    if found.best is None:
        error = next((trial.error for trial in found.trials if trial.error), "")
        click.echo(
            f"\nnone of these has a lower {minimize} than the scenario as it is, {decimal(found.score, 2)}: leave it"
        )
        if error:
            click.echo(f"one failed: {printable(error)}")
    else:
        click.echo(
            f"\nlowest {minimize} on these runs, {decimal(found.best.score, 2)} (as it is {decimal(found.score, 2)}), with\n"
        )
        for knob, value in zip(knobs, found.best.values, strict=True):
            click.echo(f"  {printable(knob.name)}={printable(value)}")
        _show_judged(found, minimize, constraints)
    click.echo(f"\ntrials   {out / _TRIALS}")
    for title, file in (("patch", _PATCH), ("settings", _SETTINGS), ("page", f"{_COMPARED}/{PAGE}")):
        if found.best is not None and (out / file).exists():
            click.echo(f"{title:<8} {out / file}")


def _show_judged(found: Found, minimize: str, constraints: Sequence[Constraint]) -> None:
    if found.error:
        click.echo(f"\nit cannot be run on what the search has not seen: {found.error}")
        return
    click.echo(f"\non {len(found.before)} runs that the search has not seen:\n")
    click.echo(aligned(judged_table(found.before, found.after)))
    if is_within_spread(minimize, found.before, found.after):
        click.echo(
            f"\nthe change of {minimize} is within its spread between these runs: more --seeds show whether it is chance"
        )
    broken = found.broken(constraints)
    if broken:
        texts = ", ".join(constraint.text for constraint in broken)
        click.echo(
            f"\nthere it does not keep {printable(texts)}: leave the settings as they are, or search on more days and seeds"
        )
    else:
        click.echo("\nthere it keeps every constraint; nothing was applied")
