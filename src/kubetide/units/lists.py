"""Lists of names, and counts, within a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int, noun: str = "") -> str:
    """Return the first names and how many more there are: ``a, b and 3 more``, or ``and 3 more groups`` with a noun."""
    more = len(names) - most
    text = ", ".join(names[:most])
    return f"{text} and {more} more{noun and f' {noun}'}" if more > 0 else text


def counted(number: int, noun: str) -> str:
    """Return ``1 seed`` or ``3 seeds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
