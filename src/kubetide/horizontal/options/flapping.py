"""Changes and reversals of an HPA within an hour (annotation ``flap-report``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kubetide.horizontal.memory import Change
from kubetide.units.time import Instant, hours

HOUR = hours(1)


class FlapReport(NamedTuple):
    """Changes of the last hour, and how many of them reversed the one before."""

    changes: int
    reversals: int


def recent_changes(changes: Sequence[Change], new: Change | None, now: Instant) -> tuple[Change, ...]:
    """Return the changes of the last hour, oldest first."""
    recent = tuple(change for change in changes if change.at > now - HOUR)
    return recent if new is None else (*recent, new)


def flap_report(changes: Sequence[Change], now: Instant) -> FlapReport:
    """Return the report of the last hour."""
    recent = recent_changes(changes, None, now)
    reversals = sum((a.change > 0) != (b.change > 0) for a, b in pairwise(recent))
    return FlapReport(len(recent), reversals)
