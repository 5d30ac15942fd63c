"""Warnings about a table, for its events; the rest of the table is followed."""

from __future__ import annotations

from typing import Final

from kubetide.schedules.state import State
from kubetide.schedules.tables import Table
from kubetide.schedules.times.plans import Plan

INVALID: Final = "InvalidTimeTable"
"""The reason of the events."""


def warnings_of(state: State, table: Table, plan: Plan) -> tuple[str, ...]:
    """Return warnings about a table by itself and together with others of the same target."""
    found = [*plan.warnings, *table.notes]
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
