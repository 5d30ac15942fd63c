"""Drives a loop: when it ticks, how failed ticks are handled, and which loops wait for each other."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from kubetide.loop.protocol import Loop
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, CloudError
from kubetide.units.time import ZERO, Duration, Instant, after, seconds, to_seconds

_PATIENCE = seconds(1)
"""So long a tick waits for the ticks of others that may bring it new intents."""


class Runner:
    """Ticks a loop every period, from the sync of its caches until it is cancelled.

    Args:
        waits_for: Runners whose ticks under way end before each tick of this one, so that what they announce
            on the board at the same instant is seen.
    """

    def __init__(self, loop: Loop, clock: Clock, *, waits_for: Sequence[Runner] = ()) -> None:
        self.loop = loop
        self._clock = clock
        self._waits_for = tuple(waits_for)
        self._resting, self._idle = asyncio.Event(), asyncio.Event()
        self._resting.set()
        self._idle.set()
        self._ending = False

    async def run(self) -> None:
        """Tick until cancelled or asked to finish; call ``wake`` when it is due between two ticks."""
        loop, clock = self.loop, self._clock
        await loop.synced()
        due = after(clock.now(), ZERO if loop.ticks_at_once else loop.period)
        while not self._ending:
            wake = loop.next_wake()
            first = due if wake is None else min(wake, due)
            if await self._rest_until(first):
                await self._guarded(self._tick(loop.early))
                if loop.early_restarts_period:
                    due = after(clock.now(), loop.period)
                continue
            if first < due:
                await self._guarded(loop.wake())
                continue
            await self._guarded(self._tick(loop.tick))
            # From the first tick on, so that ticks do not drift; of those that were missed one is made up for.
            due = after(due, Duration(loop.period * max(1, (clock.now() - due) // loop.period)))

    async def finish(self) -> None:
        """Begin no other tick, and return once the one under way has ended."""
        self._ending = True
        await self._idle.wait()

    async def resting(self) -> None:
        """Return once no tick is running, or when one takes too long to wait for."""
        if self._resting.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(to_seconds(_PATIENCE)):
                await self._resting.wait()

    async def _tick(self, tick: Callable[[], Awaitable[None]]) -> None:
        loop = self.loop
        self._resting.clear()
        if loop.eager is not None:
            loop.eager.clear()
        try:
            loop.health.began = self._clock.monotonic()
            for runner in self._waits_for:
                await runner.resting()
            await tick()
            loop.health.last_tick = self._clock.now()
            loop.health.took = Duration(self._clock.monotonic() - loop.health.began)
        finally:
            self._resting.set()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        if self._ending:
            work.close()
            return
        health = self.loop.health
        self._idle.clear()
        try:
            await work
        except (CloudError, ApiError) as error:
            health.failures += 1
            health.cloud_failures += isinstance(error, CloudError)
            health.last_excused = self._clock.now()
            health.last_failure = str(error)
        except Exception:  # noqa: BLE001  # the rim of the loop: counted, noted, and the next tick is tried
            health.failures += 1
            health.bugs += 1
            health.last_failure = traceback.format_exc()
            self._start_anew()
        finally:
            self._idle.set()

    def _start_anew(self) -> None:
        try:
            self.loop.start_anew()
        except Exception:  # noqa: BLE001  # the rim of the loop again: the next tick is tried with what there is
            self.loop.health.last_failure += traceback.format_exc()

    async def _rest_until(self, due: Instant) -> bool:
        """Sleep until then, or until the loop asks for a tick at once; return whether it did."""
        eager = self.loop.eager
        if eager is None:
            await self._sleep_until(due)
            return False
        if eager.is_set():
            return True
        loop, is_due, over = asyncio.get_running_loop(), False, False

        def ring() -> None:
            nonlocal is_due
            if not over:
                is_due = True
                eager.set()

        def soon() -> None:
            # Two turns later, so that others that are due at the same instant have begun, and caches have what they write.
            loop.call_soon(loop.call_soon, ring)

        left = Duration(due - self._clock.now())
        timer = loop.call_later(to_seconds(left), soon) if left > 0 else loop.call_soon(soon)
        try:
            await eager.wait()
        finally:
            timer.cancel()
            over = True
        if is_due:
            eager.clear()
        return not is_due

    async def _sleep_until(self, due: Instant) -> None:
        await self._clock.sleep(Duration(due - self._clock.now()))
