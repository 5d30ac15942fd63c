"""Warnings about a table, for its events; the rest of the table is followed."""

from __future__ import annotations

from typing import Final

from kubetide.schedules.kinds.alibaba import is_new
from kubetide.schedules.state import State
from kubetide.schedules.tables import Progress, Table
from kubetide.schedules.times.calendar import Once
from kubetide.schedules.times.plans import Plan

INVALID: Final = "InvalidTimeTable"
"""The reason of the events."""


def warnings_of(state: State, table: Table, plan: Plan, progress: Progress) -> tuple[str, ...]:
    """Return warnings about a table by itself and together with others of the same target."""
    found = [*plan.warnings, *table.notes, *_late_jobs(table, plan, progress)]
    names = [rule.name for rule in table.rules if rule.name]
    found += [
        f"{name}: the name stands {names.count(name)} times; the first one alone may be followed"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    others = sorted(state.sharing.get(table.target.identity, set()) - {table.key})
    if others:
        named = ", ".join(f"{kind} {namespace}/{name}" for kind, namespace, name in others)
        found.append(
            f"{table.target.kind} {table.target.name} is changed by {named}, too: the last change holds; "
            "put all rules into one object"
        )
    return tuple(found)


def _late_jobs(table: Table, plan: Plan, progress: Progress) -> list[str]:
    """Return a warning for each job whose one date was past when it was edited, but not when the object was created."""
    submitted = {mark.rule.name: mark.at for mark in progress.marks if is_new(mark)}
    return [
        f"{entry.rule.name} ({entry.rule.schedule!r}): was past when the job was submitted; it never begins"
        for entry in plan.entries
        if isinstance(entry.calendar, Once)
        and entry.calendar.last(submitted.get(entry.rule.name, table.created)) is not None
        and entry.calendar.next(table.created) is not None
    ]
