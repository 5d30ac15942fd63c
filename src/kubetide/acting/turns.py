"""Other tasks have a turn while a long piece of work is done."""

from __future__ import annotations

from typing import TypeVar

from kubetide.ports.clock import Clock
from kubetide.units.steps import Steps
from kubetide.units.time import ZERO

T = TypeVar("T")


async def in_turns(steps: Steps[T], clock: Clock) -> T:
    """Do the work, with a turn for others wherever it pauses; return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
        await clock.sleep(ZERO)
