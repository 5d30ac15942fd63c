"""The status page of a run's loops, from its records, also while the run goes on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.loop import RECORDED, Cell, LoopEntry, Table, is_loop, loop_entry
from kubetide.objects.base import json_name
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.recording.folder import is_running
from kubetide.runtime.recording.index_lines import Entries, Entry
from kubetide.runtime.recording.indexed_records import read_reasons
from kubetide.runtime.recording.records import Ending, RecordError, ending, recorded_loops
from kubetide.simulate.answers.moments import Moments, NotBegun
from kubetide.simulate.answers.when import Moment, start_of_records
from kubetide.simulate.outcome.marks import marks_of
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    before,
    format_rfc3339,
    hours,
    minutes,
    parse_rfc3339,
)

_MORE = 1000
"""Records that are looked through at once for older decisions."""

_DECISIONS = 10
_HOUR = hours(1)
_NEVER = Instant((1 << 63) - 1)
_MISSED = 5
ALL_WELL: Final = "Nothing waits, and nothing failed in the last hour."
"""The answer where nobody has to do anything."""

_WELL = ("running", "ended", "went on")
"""States of a loop that nobody has to look at."""
_GRACE = minutes(2)
"""A loop is silent when it has missed so many of its ticks and this time has gone by."""


class LoopStatus(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """A loop's status in its records.

    Attributes:
        name: Of the loop.
        last_tick: When it decided last (RFC 3339).
        tick: Count of that tick since the process began.
        state: ``running``; ``ended`` where the run ended cleanly, ``cut short`` where it did not; ``went on`` where the time
            that is asked about is before its end; ``silent since TIME`` where other loops went on without it.
        decisions: How many decisions the last hour has.
        failures: How many of these failed: refused, failed, or only advised.
        last_failure: The last of them, and when it was (``last_failure_at``, RFC 3339); empty where there is none.
        holds: Why the loop takes nothing away.
    """

    name: str
    last_tick: str
    tick: int
    state: str
    decisions: int
    failures: int
    last_failure: str
    last_failure_at: str
    holds: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """A decision of a loop."""

    at: str
    loop: str
    subject: str
    text: str
    why: tuple[str, ...]
    in_vain: bool


class Status(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """The page.

    Attributes:
        answer: What waits or is wrong, a sentence each, loops first; that nothing is, where there is nothing.
        tables: Those of the loops by title, with a mapping per row.
    """

    at: str
    answer: tuple[str, ...]
    loops: tuple[LoopStatus, ...]
    tables: dict[str, list[dict[str, Cell]]]
    decisions: tuple[Decision, ...]


def status_of(run: Path | Moments, at: Moment | None = None) -> tuple[Status, tuple[Table, ...]]:
    """Return the status page of the records in a folder, and its tables with their columns.

    Args:
        run: Where a run keeps its records, or the moments of that folder.
        at: The moment that is asked about; None is the end of the records. Loops that had not begun are left out.
    Raises: RecordError where there are none, or none until then.
    """
    moments = Moments.of(run)
    folder = moments.folder
    loops: list[LoopStatus] = []
    expected: list[Instant] = []
    tables: list[Table] = []
    marks: list[Mark] = []
    for name in recorded_loops(folder):
        if name in RECORDED:
            marks += _marks_until(moments, name, at)
        if not is_loop(name):
            continue
        try:
            one, due, own, said = _loop(moments, loop_entry(name), at)
        except NotBegun:
            continue
        loops.append(one)
        expected.append(due)
        tables += own
        marks += said
    if not loops and at is not None:
        raise RecordError(
            f"nothing is recorded under {folder} until {format_rfc3339(at.at)}: the run begins at "
            f"{format_rfc3339(start_of_records(folder))}"
        )
    if not loops:
        raise RecordError(f"no loop of {folder} is known here; install the packages that the run had")
    marks.sort(key=lambda mark: mark.at)
    shown = _with_silent(loops, expected)
    return (
        Status(
            at=max(one.last_tick for one in loops),
            answer=_answer(shown, tables),
            loops=shown,
            tables={
                table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                for table in tables
            },
            decisions=tuple(map(decision_of, _distinct(marks)[-_DECISIONS:])),
        ),
        tuple(tables),
    )


def _answer(loops: Sequence[LoopStatus], tables: Sequence[Table]) -> tuple[str, ...]:
    """Return what a person who is paged reads first."""
    found: list[str] = []
    for one in loops:
        if one.state not in _WELL:
            found.append(f"Loop {one.name} is {one.state}.")
        found += [f"Loop {one.name} takes nothing away: {text}" for text in one.holds]
        if one.last_failure:
            found.append(f"Loop {one.name}, last in vain at {one.last_failure_at}: {one.last_failure}")
    found += [table.sentence for table in tables if table.sentence]
    return tuple(found) or (ALL_WELL,)


def _marks_until(moments: Moments, name: str, at: Moment | None) -> list[Mark]:
    """Return what was done until a moment by what is recorded and is no loop."""
    found = [one for one in moments.entries(name) if at is None or one.now < at.end]
    return _last_marks(name, found) if found else []


def _loop(
    moments: Moments, entry: LoopEntry[Any], at: Moment | None
) -> tuple[LoopStatus, Instant, tuple[Table, ...], list[Mark]]:
    """Return what a loop shows of itself, and until when it would have ticked again at the latest.

    Raises: RecordError; NotBegun where there was nothing to show yet.
    """
    shown = entry.status
    holds: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    with moments.state(entry.name, at, decided=shown is not None and shown.after_decision) as state:
        last = state.last
        if shown is not None:
            holds = shown.holds(state.core)
            tables = shown.tables(state.core, last.now)
    marks = _last_marks(entry.name, state.until)
    recent = [mark for mark in marks if mark.at >= before(last.now, _HOUR)]
    failed = [mark for mark in recent if mark.fruitless]
    status = LoopStatus(
        name=entry.name,
        last_tick=format_rfc3339(last.now),
        tick=last.tick,
        state="went on" if state.goes_on else _state(moments.folder, entry.name),
        decisions=len(recent),
        failures=len(failed),
        last_failure=with_hint(failed[-1].title, (entry.name,)) if failed else "",
        last_failure_at=format_rfc3339(Instant(failed[-1].at)) if failed else "",
        holds=holds,
    )
    return status, _due(state.until, last.now), tables, marks


def _due(entries: Entries, last: Instant) -> Instant:
    """Return until when a loop that goes on would have ticked again, as it did before; for ever where it ticked once."""
    earlier = bisect_left(entries, last, key=lambda one: one.now)
    if earlier == 0:
        return _NEVER
    interval = last - entries[earlier - 1].now
    return after(last, Duration(_MISSED * interval + _GRACE))


def _with_silent(loops: Sequence[LoopStatus], expected: Sequence[Instant]) -> tuple[LoopStatus, ...]:
    """Return the loops, of which those say so that have not ticked for long while others did."""
    newest = max(parse_rfc3339(one.last_tick) for one in loops)
    return tuple(
        msgspec.structs.replace(one, state=f"silent since {one.last_tick}")
        if newest > due and one.state in {"running", "went on"}
        else one
        for one, due in zip(loops, expected, strict=True)
    )


def _state(folder: Path, loop: str) -> str:
    """Return how the run stands at the end of its records."""
    if ending(folder, loop) is Ending.WHOLE:
        return "ended"
    return "running" if is_running(folder) else "cut short"


def _last_marks(loop: str, found: Sequence[Entry]) -> list[Mark]:
    """Return what was decided in the last hour, and before it until there is enough to show."""
    since = before(found[-1].now, _HOUR)
    end = len(found)
    begin = bisect_left(found, since, key=lambda one: one.now)
    marks: list[Mark] = []
    while True:
        read = [mark for record in read_reasons(loop, found[begin:end]) for mark in marks_of(record)]
        marks = read + marks
        if begin == 0 or len(_distinct(marks)) >= _DECISIONS:
            return marks
        begin, end = max(0, begin - _MORE), begin


def _distinct(marks: list[Mark]) -> list[Mark]:
    """Leave out what says again what was the last to be said of its subject."""
    said: dict[tuple[str, str], str] = {}
    found = []
    for mark in marks:
        key = (mark.loop, mark.subject)
        if said.get(key) != mark.title:
            found.append(mark)
        said[key] = mark.title
    return found


def decision_of(mark: Mark) -> Decision:
    """Return a decision in machine-readable form."""
    return Decision(
        at=format_rfc3339(Instant(mark.at)),
        loop=mark.loop,
        subject=mark.subject,
        text=with_hint(mark.title, (mark.loop,)),
        why=tuple(mark.why),
        in_vain=mark.fruitless,
    )
