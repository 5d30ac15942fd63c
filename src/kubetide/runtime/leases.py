"""Leases, renewed in a thread of their own, as client-go renews them in a goroutine.

A step of a loop over hundreds of thousands of pods takes seconds, and longer where the processor is shared: meanwhile
nothing else of its event loop goes on, and a lease that is not renewed in time ends the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import NamedTuple, Self

from kubetide.acting import Elector, LeaseLost
from kubetide.ports.clock import Clock
from kubetide.runtime.timing.clock import run_real

Electors = Mapping[str, Elector]
"""By the name of the lease."""


class _Made(NamedTuple):
    electors: Electors
    begin: Callable[[], object]
    end: Callable[[], object]


class LeaseThread:
    """Electors in an event loop of a thread of their own; an async context manager.

    What others read of an elector are single values, which any thread may read.

    Args:
        make: Opens the electors, in that thread and with its clock.
        clock: Of the calling thread.
    """

    def __init__(self, make: Callable[[Clock], AbstractAsyncContextManager[Electors]], clock: Clock) -> None:
        self._make, self._clock = make, clock
        self._threads = ThreadPoolExecutor(1, "leases")
        self._when_made: Future[_Made] = Future()
        self._made: _Made
        self._ended: asyncio.Future[None]

    @property
    def electors(self) -> Electors:
        """The electors, inside of the block; they begin with ``run``."""
        return self._made.electors

    async def __aenter__(self) -> Self:
        """Start the thread. Raises what ``make`` raises."""
        work = partial(run_real, self._elect, start=self._clock.now())
        self._ended = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            self._made = await asyncio.wrap_future(self._when_made)
        except asyncio.CancelledError:
            if not self._when_made.cancel():
                self._when_made.result().end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(LeaseLost):  # ``run`` raised it
            await self._finish()
        self._threads.shutdown(wait=False)

    async def run(self) -> None:
        """Acquire and renew the leases until cancelled, and then release them. Raises: LeaseLost."""
        self._made.begin()
        try:
            await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            await self._finish()
            raise

    async def _finish(self) -> None:
        if not self._ended.done():
            self._made.end()
        await asyncio.shield(self._ended)

    async def _elect(self, clock: Clock) -> None:
        loop, task, begun = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
        assert task is not None, "run_real runs it as a task"
        lost: LeaseLost | None = None
        try:
            async with self._make(clock) as electors:
                begin = partial(loop.call_soon_threadsafe, begun.set)
                end = partial(loop.call_soon_threadsafe, task.cancel)
                if not self._when_made.set_running_or_notify_cancel():
                    return  # nobody waits for them any more
                self._when_made.set_result(_Made(electors, begin, end))
                await begun.wait()
                async with asyncio.TaskGroup() as tasks:
                    for elector in electors.values():
                        tasks.create_task(elector.run())
        except* asyncio.CancelledError:
            pass  # it was asked to end
        except* LeaseLost as group:
            lost = next(one for one in group.exceptions if isinstance(one, LeaseLost))
        except* Exception as group:
            if self._when_made.done():
                raise
            self._when_made.set_exception(group.exceptions[0])
        if lost is not None:
            raise lost
