"""Paused scaling, in both directions or one (annotation ``pause``)."""

from __future__ import annotations

from kubetide.horizontal.options.annotations import ALL, IN, OUT


def unpaused(pause: str, current: int, desired: int) -> int:
    """Return ``current`` if the change is paused, else ``desired``."""
    is_paused = pause == ALL or (pause == IN and desired < current) or (pause == OUT and desired > current)
    return current if is_paused else desired
