"""What the loop forgets after a clock that was ahead was set back.

Marks of a time that has not come would stop a table until it comes, also after a restart, as they stand in statuses.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubetide.schedules.kinds.alibaba import SUBMITTED
from kubetide.schedules.tables import Mark, Progress, Table
from kubetide.units.time import Instant, after, format_rfc3339, hours

AHEAD: Final = hours(1)
"""A mark further ahead is of a wrong clock; within it, clocks of two machines may differ."""


def is_ahead(at: Instant | None, now: Instant) -> bool:
    """Return whether a time is too far ahead to have been."""
    return at is not None and at > after(now, AHEAD)


def without_future(table: Table, progress: Progress, now: Instant) -> Progress:
    """Return the progress without what is marked with a time that has not come.

    The latest change by the true time is then made again. A job that runs once waits for its next date instead.
    """
    attempts = progress.attempts
    if any(is_ahead(one.again, now) for one in attempts):
        attempts = tuple(one for one in attempts if not is_ahead(one.again, now))
    marks = progress.marks
    if any(is_ahead(one.at, now) for one in marks):
        marks = tuple(_anew(table, one, now) for one in marks)
    last = None if is_ahead(progress.last, now) else progress.last
    return replace(progress, attempts=attempts, marks=marks, last=last)


def step_warnings(progress: Progress, now: Instant) -> tuple[str, ...]:
    """Return a warning if activations are marked as done at a time that has not come."""
    times = [one.at for one in progress.marks] + ([] if progress.last is None else [progress.last])
    newest = max(times, default=None)
    if newest is None or not is_ahead(newest, now):
        return ()
    marked, at = format_rfc3339(newest), format_rfc3339(now)
    return (
        f"its last change is marked {marked}, but it is {at}: a clock was ahead; the latest change is made again",
    )


def _anew(table: Table, mark: Mark, now: Instant) -> Mark:
    """Return a mark as if nothing had been done since the table was created, but what was done once in the past."""
    if mark.rule.once:
        return Mark(mark.rule, SUBMITTED, "", now) if is_ahead(mark.at, now) else mark
    return replace(mark, at=min(table.created, now))
