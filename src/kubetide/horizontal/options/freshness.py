"""Metric values that are too old to be used (annotation ``max-age``)."""

from __future__ import annotations

from kubetide.units.time import Duration, Instant, between, format_duration


def too_old(most: Duration | None, measured: int, now: Instant) -> str:
    """Return the text that a value is too old; empty if it is not, or if its source reports no measuring time."""
    if most is None or measured <= 0:
        return ""
    age = between(Instant(measured), now)
    if age <= most:
        return ""
    return f"the value is {format_duration(age)} old, older than the {format_duration(most)} of horizontal.kubetide.io/max-age"
