"""How restless an HPA is, where the annotation ``flap-report`` asks for it: changes and reversals of an hour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kubetide.horizontal.memory import Change
from kubetide.units.time import Instant, hours

HOUR = hours(1)


class FlapReport(NamedTuple):
    """Changes of the last hour, and how many of them went against the one before."""

    changes: int
    reversals: int


def recent_changes(changes: Sequence[Change], new: Change | None, now: Instant) -> tuple[Change, ...]:
    """Return the changes that are still to be remembered, oldest first."""
    recent = tuple(change for change in changes if change.at > now - HOUR)
    return recent if new is None else (*recent, new)


def flap_report(changes: Sequence[Change], now: Instant) -> FlapReport:
    """Count the changes of the last hour."""
    recent = recent_changes(changes, None, now)
    reversals = sum((a.change > 0) != (b.change > 0) for a, b in pairwise(recent))
    return FlapReport(len(recent), reversals)
