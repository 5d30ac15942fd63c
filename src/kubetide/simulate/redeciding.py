"""Decides records again, which leaves a loop's core where they lead."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.explain.records import Core, Record


def redecide(core: Core, records: Sequence[Record]) -> None:
    """Decide all records again but the last, which is only applied.

    Args:
        core: A fresh one.
        records: In order; the first holds a whole state.
    """
    for record in records[:-1]:
        core.apply(bytes(record.state), full=record.full)
        finish(core, record)
    last = records[-1]
    core.apply(bytes(last.state), full=last.full)


def finish(core: Core, record: Record) -> None:
    """Decide a record that was applied, and take in what came of it."""
    core.decide(record.now)
    core.absorb(bytes(record.outcomes), record.now)
