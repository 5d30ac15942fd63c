"""Sentences about metric sources that fail for a while: one at the beginning, with since when, and one at the end."""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.loop import SourceHealth
from kubetide.units.time import Instant, before, format_rfc3339, seconds

PATIENCE = seconds(30)
"""A source that fails for less is not worth a line: the HPAs' conditions have it."""


def failing_sources(sources: Iterable[SourceHealth], now: Instant) -> dict[str, str]:
    """Return, per source, why and since when it fails; an empty text if it answers."""
    found = {}
    for source in sources:
        since = source.failing_since
        failing = since is not None and since <= before(now, PATIENCE)
        found[source.name] = (
            f"no {source.name} since {format_rfc3339(since)}: {source.problem}; nothing is decided by them until they "
            "are back"
            if failing and since is not None
            else ""
        )
    return found
