"""Access tokens and keys that hold for a while, made anew shortly before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, before, minutes

T = TypeVar("T")
_EARLY = minutes(5)


class Keys(NamedTuple):
    """A secret by its id; ``token`` comes with temporary ones."""

    id: str
    secret: str
    token: str = ""


class Until(NamedTuple, Generic[T]):
    """What was made, and when it ends."""

    value: T
    end: Instant


class Renewed(Generic[T]):
    """Holds one thing that ends; many may ask for it at once, it is made once."""

    def __init__(self, make: Callable[[], Awaitable[Until[T]]], clock: Clock) -> None:
        self._make, self._clock = make, clock
        self._held: Until[T] | None = None
        self._turn = asyncio.Lock()

    async def __call__(self) -> T:
        """Return what is valid now. Raises what ``make`` raises, once the last one has ended."""
        async with self._turn:
            if self._held is None or self._clock.now() >= before(self._held.end, _EARLY):
                try:
                    self._held = await self._make()
                except CloudError:
                    if self._held is None or self._clock.now() >= self._held.end:
                        raise
            return self._held.value
