"""A bounded number of parallel requests. A failed one stops none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def in_parallel(items: Sequence[A], work: Callable[[A], Awaitable[B]], *, limit: int) -> list[B]:
    """Process the items with ``limit`` workers, in order, and return the results in the items' order.

    Raises: What the first item raised of those that did, once all items are done: nothing goes on behind a failure.
    """
    answers: dict[int, B] = {}
    failures: dict[int, Exception] = {}
    waiting = iter(enumerate(items))

    async def worker() -> None:
        for index, item in waiting:
            try:
                answers[index] = await work(item)
            except Exception as error:  # noqa: BLE001  # raised below, when nothing is under way any more
                failures[index] = error

    workers = min(limit, len(items))
    if workers == 1:
        await worker()
    elif workers:
        await asyncio.gather(*(worker() for _ in range(workers)))
    if failures:
        raise failures[min(failures)]
    return [answers[index] for index in range(len(items))]


async def both(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """Await two awaitables at the same time, and return the result of each.

    Raises: What the first of them raised, else the second, once both are done.
    """
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(other, BaseException):
        raise other
    return one, other
