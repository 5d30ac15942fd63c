"""The option ``--at``: the moment of a run's records that a command is asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubetide.simulate.answers.when import Moment


def at_option() -> Callable[[Any], Any]:
    """Return the option, as a decorator of a command."""
    return click.option(
        "--at",
        metavar="TIME",
        help="13:00 (the first tick in that minute), 13:00:40 or 2026-03-02T13:00:40Z (that whole second), or 90m "
        "after the start of the run.  [default: the end]",
    )


def moment_at(at: str | None, out: Path) -> Moment | None:
    """Return the moment that the option names in the records of a folder; None for their end.

    Raises: click.BadParameter for a text that is no time; RecordError where nothing is recorded.
    """
    if at is None:
        return None
    from kubetide.simulate.answers.when import read_moment, start_of_records

    start = start_of_records(out)
    try:
        return read_moment(at, start)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--at") from error
