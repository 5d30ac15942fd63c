"""Decides records again, which leaves a loop's core where they lead."""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.explain.records import Core, Record


def redecide(core: Core, records: Iterable[Record]) -> Record:
    """Decide all records again but the last, which is only applied, and return that one.

    Args:
        core: A fresh one.
        records: In order, at least one; the first holds a whole state.
    """
    last: Record | None = None
    for record in records:
        if last is not None:
            finish(core, last)
        core.apply(bytes(record.state), full=record.full)
        last = record
    assert last is not None, "the caller has at least one"
    return last


def finish(core: Core, record: Record) -> None:
    """Decide a record that was applied, and take in what came of it."""
    core.decide(record.now)
    core.absorb(bytes(record.outcomes), record.now)
