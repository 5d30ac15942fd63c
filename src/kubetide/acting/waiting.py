"""A limit of time for work that rarely waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from kubetide.units.time import Duration, to_seconds

T = TypeVar("T")


async def within(limit: Duration, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns. Raises: TimeoutError where it takes longer; what it raises.

    A timer is set only once it waits: a source in this process has its answer at once.
    """
    begun = _Begun(work)
    if not begun.waits:
        return begun.result
    async with asyncio.timeout(to_seconds(limit)):
        return await begun


class _Begun(Generic[T]):
    """A coroutine that has run up to its first wait, or to its end; then ``result`` is what it has returned.

    Awaited, by the task that made it, it goes on from there.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.waits = True
        self.result: T
        try:
            self._waits_for = work.send(None)
        except StopIteration as end:
            self.waits, self.result = False, end.value

    def __await__(self) -> Generator[Any, Any, T]:
        """Return the result, once the work has ended."""
        waits_for = self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:  # noqa: BLE001  it is the work's to handle: a limit of time, or the end
                    waits_for = self._work.throw(error)
                else:
                    waits_for = self._work.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result
