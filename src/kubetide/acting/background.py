"""Writes that a tick stops waiting for when they hang: they go on in the background, one at a time for each object.

One slow admission webhook must not make all objects late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from kubetide.units.time import seconds, to_seconds

A = TypeVar("A")
B = TypeVar("B")

_PATIENCE: Final = seconds(3)
"""So long a tick waits for a write, before it goes on without the outcome."""


class Unfinished(Enum):
    """Why the outcome of a write is not known yet, as a sentence."""

    UNDER_WAY = "the API server has not answered the write yet"
    PUT_OFF = "it waits for the next tick, as the API server does not answer"


class BackgroundWrites(Generic[A, B]):
    """Carries writes out in parallel; those that take longer than three seconds go on in the background.

    Args:
        work: Writes one item; each request has a deadline of its own.
        key: Returns the object that an item is about: no second write of it begins while one is under way.
        limit: So many writes of a tick are under way at once.
    """

    def __init__(
        self, work: Callable[[A], Awaitable[B]], key: Callable[[A], Hashable], *, limit: int
    ) -> None:
        self._work = work
        self._key = key
        self._limit = limit
        self._under_way: dict[Hashable, tuple[A, asyncio.Future[B]]] = {}
        self._begun: asyncio.Future[list[B | Unfinished]] | None = None

    async def carry_out(self, items: Sequence[A]) -> list[B | Unfinished]:
        """Return the outcomes in the order of the items; those about one object are written in that order, too.

        A worker whose write hangs begins no other. What none began is put off, so that a tick is late by seconds only.

        Raises: What the first item raised of those that did, once all have ended or hang.
        """
        if not items:
            return []
        found: dict[int, B | Unfinished] = {}
        failures: dict[int, Exception] = {}
        by_object: dict[Hashable, list[tuple[int, A]]] = {}
        for index, item in enumerate(items):
            key = self._key(item)
            if key in self._under_way:
                found[index] = Unfinished.UNDER_WAY
            else:
                by_object.setdefault(key, []).append((index, item))
        waiting = iter(by_object.values())

        async def worker() -> None:
            for writes in waiting:
                for index, item in writes:
                    try:
                        found[index] = outcome = await self._patiently(item)
                    except Exception as error:  # noqa: BLE001  # raised below, when nothing else is waited for
                        failures[index] = error
                        continue
                    if outcome is Unfinished.UNDER_WAY:
                        return

        await asyncio.gather(*(worker() for _ in range(min(self._limit, len(by_object)))))
        if failures:
            raise failures[min(failures)]
        return [found.get(index, Unfinished.PUT_OFF) for index in range(len(items))]

    async def begin(self, items: Sequence[A]) -> None:
        """Carry the items out, but wait for three seconds in all: of thousands most go on behind a rate limit.

        While earlier items go on, these are not begun: pass them again.

        Raises: as ``carry_out``.
        """
        if self._begun is None:
            self._begun = asyncio.ensure_future(self.carry_out(items))
        try:
            async with asyncio.timeout(to_seconds(_PATIENCE)):
                await asyncio.shield(self._begun)
        except TimeoutError:
            pass
        finally:
            if self._begun.done():
                self._begun = None

    def ended(self) -> list[tuple[A, B]]:
        """Return the items whose writes have ended in the background since the last call, with their outcomes.

        Raises: What one of them raised.
        """
        over = [key for key, (_, task) in self._under_way.items() if task.done()]
        ended = [self._under_way.pop(key) for key in over]
        return [(item, task.result()) for item, task in ended]

    def unfinished(self) -> list[A]:
        """Return the items whose writes go on in the background, those included that ``ended`` has yet to return."""
        return [item for item, _ in self._under_way.values()]

    async def close(self) -> None:
        """Wait no longer for what is under way."""
        tasks: list[asyncio.Future[Any]] = [task for _, task in self._under_way.values()]
        if self._begun is not None:
            tasks.append(self._begun)
        self._under_way.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _patiently(self, item: A) -> B | Unfinished:
        task = asyncio.ensure_future(self._work(item))
        try:
            async with asyncio.timeout(to_seconds(_PATIENCE)):
                return await asyncio.shield(task)
        except TimeoutError:
            if task.done():
                return task.result()
        except asyncio.CancelledError:
            task.cancel()
            raise
        self._under_way[self._key(item)] = item, task
        return Unfinished.UNDER_WAY
