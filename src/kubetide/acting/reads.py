"""Reads that a tick waits for no longer than some seconds: one object must not make all others late.

The API server may take half a minute for a custom resource, where a webhook that converts its versions hangs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from kubetide.units.time import format_duration, seconds, to_seconds

T = TypeVar("T")

_PATIENCE: Final = seconds(10)
"""Longer than a client waits for its own rate limit."""

UNANSWERED: Final = f"the API server has not answered within {format_duration(_PATIENCE)}"


async def in_time(read: Awaitable[T]) -> T:
    """Return what a read returns. Raises: TimeoutError if it takes longer than ten seconds; it is given up then."""
    async with asyncio.timeout(to_seconds(_PATIENCE)):
        return await read
