"""Tasks that run beside a test."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def stop(task: asyncio.Task) -> None:
    """Cancel a task, and return once it has ended.

    Raises:
        Exception: What the task ended with before.
    """
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
