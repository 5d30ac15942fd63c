"""What most loops do not need of the protocol, as a base to start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubetide.loop.protocol import Health, SourceHealth
from kubetide.units.time import Instant

if TYPE_CHECKING:
    import asyncio


class BaseLoop:
    """A loop that holds nothing back, has nothing under way between two ticks and leaves nothing behind."""

    eager: asyncio.Event | None = None
    """Set when the next tick should not wait for its time; cleared when it begins. None for a loop that never asks."""
    ticks_at_once = True
    """The first tick waits for nothing but the caches."""

    def __init__(self) -> None:
        self.health = Health()
        """What the runner has seen of the ticks."""

    @property
    def holds(self) -> Sequence[str]:
        """Why the last tick took nothing away."""
        return ()

    @property
    def sources(self) -> Sequence[SourceHealth]:
        """The sources of measured values that the loop asks."""
        return ()

    def next_wake(self) -> Instant | None:
        """Return when something under way is due."""
        return None

    async def wake(self) -> None:
        """Move on what is under way."""

    def start_anew(self) -> None:
        """Forget what was derived."""

    async def close(self) -> None:
        """Take back what would mislead others."""
