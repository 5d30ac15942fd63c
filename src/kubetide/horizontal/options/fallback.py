"""The proposal while too few metrics answer (annotation ``fallback``)."""

from __future__ import annotations

from kubetide.horizontal.options.annotations import CURRENT, STATIC, Fallback


def fallback_proposal(fallback: Fallback | None, current: int, last_good: int | None) -> int | None:
    """Return the fallback proposal; None if there is none, and the number of replicas stays.

    Args:
        current: ``spec.replicas`` of the target.
        last_good: The last proposal that metrics made; None if none is remembered.
    """
    if fallback is None:
        return None
    if fallback.kind == STATIC:
        return fallback.replicas
    return current if fallback.kind == CURRENT else last_good
