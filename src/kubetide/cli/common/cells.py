"""What runs the cells of an experiment: processes of this machine, or the workers of a Dask scheduler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubetide.cli.common.exits import INTERRUPTED

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from kubetide.experiments.sweeps.sweep import Store, Workers


def worker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--jobs``, ``--dask`` and ``--resume`` to a command."""
    options = (
        click.option("--resume", is_flag=True, help="Use the results of cells that are already in --out."),
        click.option(
            "--dask", metavar="ADDRESS", help="Run on this Dask scheduler instead, tcp://HOST:8786."
        ),
        click.option(
            "--jobs",
            type=click.IntRange(1, 1024),
            help="Processes on this machine. [default: one per core]",
        ),
    )
    for option in options:
        command = option(command)
    return command


def cells_in(out: Path, *, resume: bool) -> Store:
    """Return the cells that are done in an output folder. Raises SweepError where there are some and none is to be taken over."""
    from kubetide.experiments.sweeps.sweep import Store, SweepError

    store = Store(out / "cells")
    if len(store) and not resume:
        raise SweepError(
            f"{out} has {len(store)} cells: go on with --resume, or choose another folder with --out"
        )
    return store


def cells_bar(name: str, total: int) -> ProgressBar[int]:
    """Return a progress bar on standard error, which only a terminal shows."""
    return click.progressbar(
        length=total, label=name, show_pos=True, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


def workers_for(dask: str | None, jobs: int | None, most: int) -> AbstractContextManager[Workers]:
    """Return the workers, which end with the context.

    Args:
        dask: The address of a scheduler; None for processes.
        jobs: How many processes; None for one a core.
        most: More are never busy.
    Raises: DaskError; UsageError where both are given.
    """
    if dask and jobs:
        raise click.UsageError(
            "--jobs is for processes of this machine, --dask has its own workers: give one of them"
        )
    if dask:
        from kubetide.experiments.sweeps.on_dask import DaskWorkers

        return DaskWorkers(dask)
    from kubetide.experiments.sweeps.processes import Processes, usable_cores

    return Processes(min(jobs or usable_cores(), most))


@contextmanager
def resumable() -> Iterator[None]:
    """Say on Ctrl-C how to go on, and end with 130."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("interrupted; the results of finished cells are saved: go on with --resume", err=True)
        sys.exit(INTERRUPTED)
