"""A bounded number of requests at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def in_parallel(items: Sequence[A], work: Callable[[A], Awaitable[B]], *, limit: int) -> list[B]:
    """Works on the items with ``limit`` workers, taken in order; gives the answers in the items' order."""
    answers: dict[int, B] = {}
    waiting = iter(enumerate(items))

    async def worker() -> None:
        for index, item in waiting:
            answers[index] = await work(item)

    workers = min(limit, len(items))
    if workers == 1:
        await worker()
    elif workers:
        await asyncio.gather(*(worker() for _ in range(workers)))
    return [answers[index] for index in range(len(items))]
