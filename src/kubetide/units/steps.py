"""Long work in steps: a generator that pauses where others may have a turn, and returns its result.

What is worked out is the same whether it is done at one go or with pauses.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]

AT_ONCE = 1_000
"""Of things that take some ten microseconds each, so many between two pauses."""


def finish(steps: Steps[T]) -> T:
    """Do the work at one go."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def is_pause(number: int) -> bool:
    """Return whether there is a pause after the item of this number, counted from 0."""
    return number % AT_ONCE == AT_ONCE - 1
