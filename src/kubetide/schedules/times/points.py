"""Which activations of a table are due, were missed, or fall on an excluded date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubetide.schedules.kinds.alibaba import is_done
from kubetide.schedules.kinds.base import Mode
from kubetide.schedules.tables import Attempt, Mark, Progress, Table
from kubetide.schedules.times.plans import Plan
from kubetide.units.time import Instant


class Try(NamedTuple):
    """An activation to try: the rule's position, its due time, the number of the try."""

    rule: int
    due: Instant
    number: int


class Due(NamedTuple):
    """The result of evaluating a table.

    Attributes:
        tries: In the order of the table.
        lost: Attempts that are given up.
        waiting: Attempts that wait.
        skipped: Activations on dates that are left out, with the expression.
        superseded: Rules whose missed activation another one has taken the place of.
    """

    tries: tuple[Try, ...] = ()
    lost: tuple[Attempt, ...] = ()
    waiting: tuple[Attempt, ...] = ()
    skipped: tuple[tuple[int, Instant, str], ...] = ()
    superseded: tuple[tuple[int, Instant], ...] = ()


def look(table: Table, mode: Mode, plan: Plan, progress: Progress, now: Instant) -> Due:
    """Return what is due in a table at that time; of several missed activations, the latest of each bound."""
    counted: dict[int, Instant] = {}
    skipped: list[tuple[int, Instant, str]] = []
    for index, since in followed(table, mode, plan, progress):
        entry = plan.entries[index]
        assert entry.calendar is not None
        last = entry.calendar.last(now)
        if last is None or last <= since:
            continue
        expression = entry.exclusion(last)
        if expression:
            skipped.append((index, last, expression))
            last = entry.calendar.last(now, entry.off)
        if last is not None and last > since:
            counted[index] = last
    holding = {index: due for index, due in counted.items() if not _is_superseded(table, index, due, counted)}
    attempts = [one for one in progress.attempts if not _is_superseded(table, one.rule, one.due, counted)]
    tried = {(one.rule, one.due) for one in attempts}
    tries = [Try(index, due, 1) for index, due in holding.items() if (index, due) not in tried]
    if mode.first_only:
        tries = [] if attempts else tries[:1]
    again = [one for one in attempts if one.again <= now]
    lost = tuple(one for one in again if mode.tries and one.count >= mode.tries)
    tries += [Try(one.rule, one.due, one.count + 1) for one in again if one not in lost]
    return Due(
        tries=tuple(sorted(tries, key=lambda one: (one.due, one.rule))),
        lost=lost,
        waiting=tuple(one for one in attempts if one.again > now),
        skipped=tuple(one for one in skipped if counted.get(one[0]) is None),
        superseded=tuple((index, due) for index, due in counted.items() if index not in holding),
    )


def _is_superseded(table: Table, rule: int, due: Instant, counted: Mapping[int, Instant]) -> bool:
    """Return whether later activations of other rules set all that an activation sets: size, minimum, maximum."""
    later = [table.rules[other] for other, when in counted.items() if when > due]
    one = table.rules[rule]
    sides = (
        (one.size, [other.size for other in later]),
        (one.minimum, [other.minimum for other in later]),
        (one.maximum, [other.maximum for other in later]),
    )
    return bool(later) and all(
        own is None or any(value is not None for value in others) for own, others in sides
    )


def following(table: Table, mode: Mode, plan: Plan, progress: Progress, now: Instant) -> Instant | None:
    """Return when to evaluate the table again; None for never."""
    found = [one.again for one in progress.attempts]
    for index, _ in followed(table, mode, plan, progress):
        entry = plan.entries[index]
        assert entry.calendar is not None
        due = entry.calendar.next(now, None if mode.by_rule else entry.off)
        if due is not None:
            found.append(due)
    return min(found, default=None)


def followed(table: Table, mode: Mode, plan: Plan, progress: Progress) -> list[tuple[int, Instant]]:
    """Return the followed rules by position, each with the time up to which it was handled."""
    found: list[tuple[int, Instant]] = []
    last = table.created if progress.last is None else progress.last
    marks: dict[str, Mark] = {mark.rule.name: mark for mark in progress.marks}
    for index, entry in enumerate(plan.entries):
        if entry.calendar is None:
            continue
        if not mode.by_rule:
            found.append((index, last))
            continue
        # Of several rules of one name the first has the mark.
        mark = marks.pop(entry.rule.name, None)
        if mark is not None and not is_done(mark) and not _is_refused(mark):
            found.append((index, mark.at))
    return found


def _is_refused(mark: Mark) -> bool:
    """Return whether the job was refused when it was submitted, rather than failed when it was due."""
    return mark.message.startswith(("Failed to create cron hpa job", "Failed to update cron hpa job"))
