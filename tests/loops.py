"""A loop by itself, with caches of its own."""

from __future__ import annotations

import asyncio

from kubetide.loop.runner import Runner


async def run_alone(loop, caches, clock):
    """Run the caches and tick the loop, until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(caches.run())
        tasks.create_task(Runner(loop, clock).run())
