"""Values that are too old to be decided by, where the annotation ``max-age`` asks for it."""

from __future__ import annotations

from kubetide.units.time import Duration, Instant, between, format_duration


def too_old(most: Duration | None, measured: int, now: Instant) -> str:
    """Say that a value is too old; empty when it is not, or when its source does not say when it was measured."""
    if most is None or measured <= 0:
        return ""
    age = between(Instant(measured), now)
    if age <= most:
        return ""
    return f"the value is {format_duration(age)} old, older than the {format_duration(most)} of horizontal.kubetide.io/max-age"
