"""A base class for loops, with defaults for optional parts of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubetide.loop.protocol import Health, Loop, SourceHealth
from kubetide.units.time import Instant

if TYPE_CHECKING:
    import asyncio


class BaseLoop:
    """A loop without holds, work between two ticks, or clean-up."""

    eager: asyncio.Event | None = None
    """Set to ask for ``early`` at once; cleared when it begins. None for a loop that never asks."""
    early_restarts_period = False
    """The tick after an early one keeps its time."""
    ticks_at_once = True
    """The first tick waits for nothing but the caches."""

    def __init__(self) -> None:
        self.health = Health()
        """What the runner has seen of the ticks."""

    @property
    def holds(self) -> Sequence[str]:
        """Why the last tick removed nothing."""
        return ()

    @property
    def sources(self) -> Sequence[SourceHealth]:
        """The metric sources of the loop."""
        return ()

    async def early(self: Loop) -> None:
        """Tick before it is time."""
        await self.tick()

    def next_wake(self) -> Instant | None:
        """Return when ``wake`` is due."""
        return None

    async def wake(self) -> None:
        """Advance the work between two ticks."""

    def start_anew(self) -> None:
        """Drop derived state."""

    async def close(self) -> None:
        """Withdraw what would mislead others."""
