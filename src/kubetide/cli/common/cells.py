"""What runs the cells of an experiment: processes of this machine, or the workers of a Dask scheduler."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import click

from kubetide.cli.common.exits import INTERRUPTED
from kubetide.experiments.sweeps.sweep import Workers


def workers_for(dask: str | None, jobs: int | None, most: int) -> AbstractContextManager[Workers]:
    """Return the workers, which end with the context.

    Args:
        dask: The address of a scheduler; None for processes.
        jobs: How many processes; None for one a core.
        most: More are never busy.
    Raises: DaskError.
    """
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
