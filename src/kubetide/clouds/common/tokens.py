"""Access tokens and keys that hold for a while, made anew shortly before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, Instant, before, minutes

T = TypeVar("T")
_EARLY, _YOUNG = minutes(5), minutes(1)


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
        self._made_at = Duration(0)
        self._turn = asyncio.Lock()

    async def __call__(self) -> T:
        """Return what is valid now. Raises what ``make`` raises, once the last one has ended."""
        async with self._turn:
            if self._held is None or self._clock.now() >= before(self._held.end, _EARLY):
                try:
                    self._held = await self._make()
                    self._made_at = self._clock.monotonic()
                except CloudError:
                    if self._held is None or self._clock.now() >= self._held.end:
                        raise
            return self._held.value

    def forget(self) -> bool:
        """Drop what a cloud has refused before its end, and return whether another one is made for the next request.

        One that is younger than a minute stays: its age is not why it was refused.
        """
        if self._held is None or self._clock.monotonic() - self._made_at < _YOUNG:
            return False
        self._held = None
        return True
