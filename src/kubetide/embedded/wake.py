"""A flag that one task waits for, with or without a limit of time."""

from __future__ import annotations

import asyncio


class Wake:
    """``asyncio.Event`` for a single waiter, which asks for the running event loop once.

    In Python 3.11 that question is a system call; asked on each wait it is a part of a virtual day.
    """

    __slots__ = ("_is_set", "_loop", "_timer", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Let the waiter go on; until ``clear`` nobody waits."""
        self._is_set = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def clear(self) -> None:
        """Make the next ``wait`` wait."""
        self._is_set = False

    async def wait(self, limit_s: float | None = None) -> None:
        """Return once the flag is set, or after so many seconds of the loop's time."""
        if self._is_set:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._waiting = self._loop.create_future()
        if limit_s is not None:
            self._timer = self._loop.call_later(limit_s, self._give_up)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
