"""Work that is due at instants, done by one task in the order of (due, put).

One agenda serves all pods of a kubelet pool or all machines of a cloud: a step of a pod's life
costs a heap entry and no task of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from kubetide.embedded.wake import Wake
from kubetide.ports.clock import Clock
from kubetide.units.time import Instant

W = TypeVar("W")


class Agenda(Generic[W]):
    """Entries with due instants, handed to a handler one after another."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: list[tuple[Instant, int, W]] = []
        self._count = 0
        self._sooner = Wake()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, due: Instant, work: W) -> None:
        """Note work for an instant; one that has passed means as soon as possible."""
        if not self._entries or due < self._entries[0][0]:
            self._sooner.set()
        self._count += 1
        heappush(self._entries, (due, self._count, work))

    async def run(self, handle: Callable[[W], Awaitable[None]]) -> None:
        """Hand over each entry when it is due, until cancelled; what ``handle`` raises ends it."""
        while True:
            self._sooner.clear()
            now = self._clock.now()
            while self._entries and self._entries[0][0] <= now:
                _, _, work = heappop(self._entries)
                await handle(work)
                now = self._clock.now()
            await self._wait()

    async def _wait(self) -> None:
        """Return when the first entry is due or one was put before it."""
        if not self._entries:
            await self._sooner.wait()
            return
        await self._sooner.wait(max(self._entries[0][0] - self._clock.now(), 0) / 1e9)
