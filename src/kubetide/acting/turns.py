"""Lets other tasks run during a long computation."""

from __future__ import annotations

from typing import TypeVar

from kubetide.ports.clock import Clock
from kubetide.units.steps import Steps
from kubetide.units.time import ZERO

T = TypeVar("T")


async def in_turns(steps: Steps[T], clock: Clock) -> T:
    """Run the work, yielding to other tasks wherever it pauses; return its result."""
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: T = end.value
                return found
            await clock.sleep(ZERO)
    finally:
        steps.close()
