"""Floors and ceilings: points hold until a later one; windows take precedence over points.

What holds is a function of the rules and the time: also of the time before the object was created.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice

from kubetide.schedules.tables import Bounds, Limits, Rule, Table
from kubetide.schedules.times.calendar import Days, Once
from kubetide.schedules.times.plans import Entry, Plan
from kubetide.units.time import Instant, format_rfc3339

_CLOCK = (1 << 60) - 1
"""The bits of a field that stand for its values."""
_MOST_PAIRS = 50
"""So many pairs of points are compared; a table with more of them is told enough by these."""
_PROBES = 60
"""So many starts of a window are compared with other rules to see whether they overlap."""

Side = Callable[[Rule], int | None]


def floor_of(rule: Rule) -> int | None:
    """Return the minimum replicas of a rule."""
    return rule.minimum if rule.size is None else rule.size


def ceiling_of(rule: Rule) -> int | None:
    """Return the maximum replicas of a rule."""
    return rule.maximum if rule.size is None else rule.size


_SIDES: Sequence[tuple[str, Side]] = (("floor", floor_of), ("ceiling", ceiling_of))


def bounds_at(plan: Plan, now: Instant) -> Bounds:
    """Return the combined bounds of the rules at a time.

    The latest point that names a bound sets it. Of open windows that name it the largest value holds, and
    comes before that of points. A ceiling is never below the floor.
    """
    entries = [entry for entry in plan.entries if entry.calendar is not None]
    held: dict[str, None] = {}
    found: dict[str, int | None] = {}
    for name, side in _SIDES:
        naming = [entry for entry in entries if side(entry.rule) is not None]
        windows = [entry for entry in naming if entry.end is not None and _is_open(entry, now)]
        best: Entry | None = None
        if windows:
            best = max(windows, key=lambda entry: side(entry.rule) or 0)
        else:
            points = [
                (last, place, entry)
                for place, entry in enumerate(naming)
                if entry.end is None and (last := _last(entry, now)) is not None
            ]
            if points:
                best = max(points, key=lambda one: one[:2])[2]
        found[name] = None if best is None else side(best.rule)
        if best is not None:
            held[best.rule.name] = None
    floor, ceiling = found["floor"], found["ceiling"]
    if floor is not None and ceiling is not None:
        ceiling = max(floor, ceiling)
    return Bounds(floor, ceiling, tuple(held), next_change(entries, now))


def next_change(entries: Sequence[Entry], now: Instant) -> Instant | None:
    """Return when a rule begins or ends next; None for never."""
    found = [_next(entry, now) for entry in entries]
    found += [entry.end.next(now) for entry in entries if entry.end is not None]
    return min((one for one in found if one is not None), default=None)


def size_within(bounds: Bounds, limits: Limits | None, current: int) -> int | None:
    """Return the size to give a workload; None if nothing must be written.

    Args:
        limits: Bounds of a horizontal section, whose autoscaler keeps the size within its own bounds: only no
            replicas, and the way back from there, are left to the schedule. None where there is no such section.
    """
    if limits is None:
        desired = max(current, bounds.minimum or 0)
        desired = desired if bounds.maximum is None else min(desired, bounds.maximum)
    elif bounds.maximum == 0:
        desired = 0
    elif current == 0 and (limits.minimum > 0 or bounds.minimum):
        # An autoscaler whose own minimum is 0 went there itself, or makes the way back itself.
        desired = max(limits.minimum if bounds.minimum is None else bounds.minimum, 1)
    else:
        return None
    return None if desired == current else desired


def fewest(bounds: Bounds, limits: Limits | None) -> int:
    """Return the fewest replicas that a workload has: where no rule names a floor, the minimum of the horizontal section.

    That gives way to a ceiling below it.
    """
    if bounds.minimum is not None:
        return bounds.minimum
    least = 0 if limits is None else limits.minimum
    return least if bounds.maximum is None else min(least, bounds.maximum)


def sizes(table: Table) -> bool:
    """Return whether the table writes the size of its target itself: with a horizontal section only from and to zero."""
    return table.limits is None or any(ceiling_of(rule) == 0 for rule in table.rules)


def checked(plan: Plan, start: Instant) -> Plan:
    """Return a plan without impossible windows, with a warning for each and for overlapping rules."""
    entries, warnings = [], list(plan.warnings)
    for entry in plan.entries:
        problem = _refusal(entry, start)
        if problem:
            warnings.append(f"{_named(entry.rule)}: {problem}; it is not followed")
        entries.append(entry._replace(calendar=None) if problem else entry)
    followed = [entry for entry in entries if entry.calendar is not None]
    for first, second in combinations(followed, 2):
        warnings += _overlap(first, second, start)
    return Plan(tuple(entries), tuple(warnings))


def with_meetings(plan: Plan, start: Instant, *, first_only: bool) -> Plan:
    """Return a plan of points with a warning for each two that begin together and ask for different sizes.

    Args:
        first_only: Whether the first listed of them holds, and not the later one.
    """
    holds = "the first listed holds" if first_only else "the later listed holds"
    followed = [entry for entry in plan.entries if entry.calendar is not None]
    warnings = list(plan.warnings)
    pairs = ((one, other) for one, other in combinations(followed, 2) if _differ(one.rule, other.rule))
    for first, second in islice((pair for pair in pairs if _may_meet(*pair)), _MOST_PAIRS):
        when = first_meeting(first, second, start)
        if when is not None:
            names = f"{_named(first.rule)} and {_named(second.rule)}"
            warnings.append(
                f"{names} are due together at {format_rfc3339(when)}, and differ in size: {holds}"
            )
    return plan._replace(warnings=tuple(warnings))


def _refusal(entry: Entry, now: Instant) -> str:
    """Return why a window cannot be; empty for none."""
    start, end = entry.calendar, entry.end
    if start is None or end is None:
        return ""
    if isinstance(start, Once) and isinstance(end, Once):
        begins, ends = start.next(Instant(0)), end.next(Instant(0))
        if begins is not None and ends is not None and ends <= begins:
            return f"it ends at {format_rfc3339(ends)}, before it starts at {format_rfc3339(begins)}"
        return ""
    if end.next(now) is None and end.last(now) is None:
        return f"end {entry.rule.end!r}: there is no such date"
    at = now
    for _ in range(_PROBES):
        begins, ends = start.next(at), end.next(at)
        if begins is None or begins != ends:
            return ""
        at = begins
    return f"start {entry.rule.schedule!r} and end {entry.rule.end!r} come together each time"


def _overlap(first: Entry, second: Entry, start: Instant) -> list[str]:
    """Return a warning where two windows, or two points, name one bound differently at the same time."""
    sides = [
        name
        for name, side in _SIDES
        if None not in (values := (side(first.rule), side(second.rule))) and values[0] != values[1]
    ]
    if not sides or (first.end is None) != (second.end is None):
        return []
    when = first_meeting(first, second, start)
    if when is None:
        return []
    holds = "the larger holds" if first.end is not None else "the later listed holds"
    names = f"{_named(first.rule)} and {_named(second.rule)}"
    return [
        f"{names} overlap from {format_rfc3339(when)} on, and differ in their {' and '.join(sides)}: {holds}"
    ]


def first_meeting(first: Entry, second: Entry, start: Instant) -> Instant | None:
    """Return when one begins while the other is open, or when two points begin together; None for not soon."""
    if not _may_meet(first, second):
        return None
    for one, other in ((first, second), (second, first)):
        at: Instant | None = start
        for _ in range(_PROBES):
            assert at is not None
            at = _next(one, at)
            if at is None:
                break
            if _is_open(other, at) if other.end is not None else _last(other, at) == at:
                return at
    return None


def _differ(one: Rule, other: Rule) -> bool:
    return (one.size, one.minimum, one.maximum) != (other.size, other.minimum, other.maximum)


def _may_meet(first: Entry, second: Entry) -> bool:
    """Return whether two points may begin together: those of one zone that share no time of day, or month, never do."""
    one, other = first.calendar, second.calendar
    if first.end is not None or not isinstance(one, Days) or not isinstance(other, Days):
        return True
    here, there = one.spec, other.spec
    shared = (
        here.seconds & there.seconds & _CLOCK,
        here.minutes & there.minutes & _CLOCK,
        here.hours & there.hours & _CLOCK,
        here.months & there.months & _CLOCK,
    )
    return one.zone != other.zone or 0 not in shared


def _is_open(entry: Entry, now: Instant) -> bool:
    assert entry.end is not None
    start, end = _last(entry, now), entry.end.last(now)
    return start is not None and (end is None or start > end)


def _last(entry: Entry, now: Instant) -> Instant | None:
    assert entry.calendar is not None
    return entry.calendar.last(now, entry.off)


def _next(entry: Entry, now: Instant) -> Instant | None:
    assert entry.calendar is not None
    return entry.calendar.next(now, entry.off)


def _named(rule: Rule) -> str:
    return rule.name or repr(rule.schedule)
