"""The queue that every controller works from: keys, each at most once, first in, first out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from kubetide.embedded.wake import Wake
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError
from kubetide.units.time import Duration, Instant, milliseconds, seconds

K = TypeVar("K", bound=Hashable)

_LOG = logging.getLogger(__name__)

# Source: client-go's default controller rate limiter: 5 ms, doubled to at most 1000 s.
_FIRST_PAUSE = milliseconds(5)
_LONGEST_PAUSE = seconds(1000)


class WorkQueue(Generic[K]):
    """Keys to be brought in line, by one worker; a key that fails comes back after a pause that doubles."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._keys: dict[K, None] = {}
        self._later: dict[K, tuple[Instant, asyncio.TimerHandle]] = {}
        self._failures: dict[K, int] = {}
        self._wake = Wake()
        self.errors = 0
        """Syncs that failed, conflicts not counted."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K) -> None:
        """Ask for a sync of the key; at once, and once, however often it is asked for."""
        self._keys[key] = None
        self._wake.set()

    def add_at(self, key: K, due: Instant) -> None:
        """Ask for a sync at that time, or earlier where an earlier one was asked for."""
        planned = self._later.get(key)
        if planned is not None:
            if planned[0] <= due:
                return
            planned[1].cancel()
        delay = max(due - self._clock.now(), 0) / 1e9
        self._later[key] = (due, asyncio.get_running_loop().call_later(delay, self._come_due, key))

    def forget(self, key: K) -> None:
        """Drop what was planned for a key that is gone."""
        self._failures.pop(key, None)
        planned = self._later.pop(key, None)
        if planned is not None:
            planned[1].cancel()

    async def serve(self, sync: Callable[[K], Awaitable[None]]) -> None:
        """Call ``sync`` for one key after another until cancelled; no failure of one key ends it."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._keys:
                key = next(iter(self._keys))
                del self._keys[key]
                await self._serve_one(key, sync)

    async def _serve_one(self, key: K, sync: Callable[[K], Awaitable[None]]) -> None:
        try:
            await sync(key)
        except ApiError as error:
            # Also the usual course: the object has changed, the cache is a moment behind.
            if error.code not in {404, 409}:
                self.errors += 1
                _LOG.warning("sync of %s failed, will be tried again: %s", key, error)
            self._retry(key)
        except Exception:  # noqa: BLE001  # the rim of a loop: it must survive one bad object
            self.errors += 1
            _LOG.exception("sync of %s failed, will be tried again", key)
            self._retry(key)
        else:
            self._failures.pop(key, None)

    def _retry(self, key: K) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min(_FIRST_PAUSE << min(failures, 30), _LONGEST_PAUSE)
        self.add_at(key, Instant(self._clock.now() + Duration(pause)))

    def _come_due(self, key: K) -> None:
        del self._later[key]
        self.add(key)
