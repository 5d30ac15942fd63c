"""The timeline of coming events, from the records of a run, also while it goes on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kubetide.loop import Coming, is_loop, loop_entry
from kubetide.objects.base import json_name
from kubetide.runtime.recording.records import RecordError, recorded_loops
from kubetide.simulate.answers.moments import Moments
from kubetide.simulate.answers.when import Moment
from kubetide.units.time import Duration, Instant, after, format_duration, format_rfc3339


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """One line of the timeline."""

    at: str
    loop: str
    subject: str
    text: str
    why: str = ""


class PlanAhead(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """Coming events between two times, as known at the first."""

    at: str
    until: str
    loops: tuple[str, ...]
    entries: tuple[Entry, ...]


def plan_ahead(run: Path | Moments, ahead: Duration, at: Moment | None = None) -> PlanAhead:
    """Return the coming events that the loops of a run expect.

    Args:
        run: Where a run keeps its records, or the moments of that folder.
        ahead: How far to look.
        at: From when on; None is the end of the records.
    Raises: RecordError where there are none.
    """
    moments = Moments.of(run)
    folder = moments.folder
    found: list[tuple[Coming, str]] = []
    loops: list[str] = []
    now = Instant(0)
    for name in recorded_loops(folder):
        entry = loop_entry(name) if is_loop(name) else None
        if entry is None or entry.core is None or entry.outlook is None:
            continue
        with moments.state(name, at) as state:
            found += [(one, name) for one in entry.outlook(state.core, state.last.now, ahead)]
        now = max(now, state.last.now)
        loops.append(name)
    if not loops:
        raise RecordError(
            f"no loop of {folder} says what is to come; a run with horizontal, nodes or schedules does"
        )
    end = after(now, ahead)
    lines = sorted(
        (one for one in found if one[0].at <= end), key=lambda one: (one[0].at, one[1], one[0].subject)
    )
    return PlanAhead(
        at=format_rfc3339(now),
        until=format_rfc3339(end),
        loops=tuple(loops),
        entries=tuple(
            Entry(at=format_rfc3339(one.at), loop=name, subject=one.subject, text=one.text, why=one.why)
            for one, name in lines
        ),
    )


def plan_text(plan: PlanAhead, ahead: Duration) -> str:
    """Return the timeline as text."""
    head = f"{plan.at}, and {format_duration(ahead)} ahead"
    if not plan.entries:
        return f"{head}\n  nothing is foreseen by {', '.join(plan.loops)}: no change of a time table, no forecast load, no node on order"
    width = max(len(one.loop) for one in plan.entries)
    lines = [head]
    for one in plan.entries:
        lines.append(f"  {one.at}  {one.loop.ljust(width)}  {one.subject}: {one.text}")
        if one.why:
            lines.append(f"  {' ' * len(one.at)}  {' ' * width}    {one.why}")
    return "\n".join(lines)
