"""Times as clouds write them, with and without seconds."""

from __future__ import annotations

from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339


def known_time(text: str) -> Instant | None:
    """Return an RFC 3339 time, None for one that cannot be read; ``2026-03-02T00:00Z``, without seconds, is the end of its minute."""
    try:
        return parse_rfc3339(text if text.count(":") != 1 else text.replace("Z", ":59Z"))
    except TimeFormatError:
        return None


def is_past(text: str, now: Instant) -> bool:
    """Return whether a time is before ``now``; one that cannot be read is not."""
    time = known_time(text)
    return time is not None and time < now
