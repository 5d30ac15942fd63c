"""What `kubetide sweep` leaves and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from kubetide.experiments.sweeps.grid import Axis
from kubetide.experiments.sweeps.page import write_sweep
from kubetide.experiments.sweeps.parquet import cells_parquet, settings_parquet
from kubetide.experiments.sweeps.results import Criterion, Effect, Setting
from kubetide.experiments.sweeps.sweep import Cell, SweepError
from kubetide.experiments.sweeps.tables import (
    cells_csv,
    counted_settings,
    effects_table,
    settings_csv,
    settings_table,
    sweep_json,
)
from kubetide.runtime.recording.folder import write_bytes_whole, write_whole
from kubetide.simulate.outcome.table import aligned, printable
from kubetide.units.lists import counted

_PAGE: Final = "sweep.html"
_MOST_ROWS: Final = 40
"""Settings that are all printed; of more only the Pareto front."""
_MOST_FAILED: Final = 20


class SweepResult(NamedTuple):
    """What came of a sweep."""

    name: str
    axes: Sequence[Axis]
    cells: Sequence[Cell]
    settings: Sequence[Setting]
    effects: Sequence[Effect]
    criterion: Criterion

    @property
    def failed(self) -> list[Cell]:
        """The cells that ended with an error."""
        return [cell for cell in self.cells if cell.outcome.error]


def write(out: Path, result: SweepResult, *, parquet: bool) -> list[Path]:
    """Write tables and page, and return the paths of the tables. Raises SweepError where that fails."""
    axes, cells, settings = result.axes, result.cells, result.settings
    files = {
        "cells.csv": cells_csv(axes, cells),
        "settings.csv": settings_csv(axes, settings),
        "sweep.json": sweep_json(*result),
    }
    if parquet:
        files |= {
            "cells.parquet": cells_parquet(axes, cells),
            "settings.parquet": settings_parquet(axes, settings),
        }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            write_bytes_whole(out / file, content)
        write_whole(out / _PAGE, lambda path: write_sweep(path, *result))
    except OSError as error:
        raise SweepError(
            f"cannot write under {out}: {error.strerror}; free space there, and go on with --resume"
        ) from error
    return [out / file for file in files]


def show(result: SweepResult, out: Path, tables: Sequence[Path], seeds: int, error_bar: str) -> None:
    """Print what came of each setting, and on standard error the cells that failed.

    Args:
        result: What came of the sweep.
        out: Where its page is.
        tables: The paths of its tables.
        seeds: On how many seeds each setting was run.
        error_bar: How close the simulated scenario is to the captured run; empty for one that was not captured.
    """
    name, axes, _, settings, effects, criterion = result
    fixed = [f"{axis.name}={axis.values[0]}" for axis in axes if len(axis.values) == 1]
    heading = [f"{counted_settings(axes, settings)} x {counted(seeds, 'seed')}", *fixed]
    click.echo(f"{printable(name)}   {printable(', '.join(heading))}\n")
    shown = settings if len(settings) <= _MOST_ROWS else [one for one in settings if one.front or one.failed]
    click.echo(aligned(settings_table(axes, shown, criterion)))
    if len(shown) < len(settings):
        click.echo(f"... and {len(settings) - len(shown)} behind the Pareto front, in settings.csv")
    click.echo(f"\n* Pareto front: no other setting costs as little and {criterion.least}\n")
    if effects:
        click.echo(f"{aligned(effects_table(effects, criterion))}\n")
    if error_bar:
        click.echo(f"{printable(error_bar)}\n")
    click.echo(f"page     {out / _PAGE}")
    click.echo(f"tables   {', '.join(map(str, tables))}")
    if result.failed:
        _show_failed(result)


def _show_failed(result: SweepResult) -> None:
    failed = result.failed
    click.echo(f"{len(failed)} of {len(result.cells)} cells failed:", err=True)
    for cell in failed[:_MOST_FAILED]:
        named = " ".join(f"{axis.name}={value}" for axis, value in zip(result.axes, cell.values, strict=True))
        click.echo(f"  {printable(named)} seed {cell.seed}: {printable(cell.outcome.error)}", err=True)
    if len(failed) > _MOST_FAILED:
        click.echo(f"  ... and {len(failed) - _MOST_FAILED} more, in cells.csv", err=True)
