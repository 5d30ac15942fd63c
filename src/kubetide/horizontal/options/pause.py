"""Scaling that is paused, altogether or in one direction, where the annotation ``pause`` asks for it."""

from __future__ import annotations

from kubetide.horizontal.options.annotations import ALL, IN, OUT


def unpaused(pause: str, current: int, desired: int) -> int:
    """Return the number that the pause leaves: ``current`` where the change is paused, else ``desired``."""
    is_paused = pause == ALL or (pause == IN and desired < current) or (pause == OUT and desired > current)
    return current if is_paused else desired
