"""Faults of the node loop's own process: killed in the middle of an action, its lease lost, its clock ahead.

The loop of a world is made anew with a clock and a guard that meddle. A kill cancels it at a write, so that the call may or may
not have been carried out; a fresh one begins some seconds later with nothing but what the cluster says.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from tests.soak.scenarios import Draw

from kubetide.explain.records import Record, Recorder
from kubetide.loop.runner import Runner
from kubetide.loop.wiring import RunningLoop
from kubetide.ports.clock import Clock
from kubetide.runtime.guard import guarded_cloud, guarded_cluster
from kubetide.simulate.world import World
from kubetide.units.time import ZERO, Duration, Instant, after, minutes, seconds

RESTARTING = ("a loop that is killed", "a lost lease", "a clock that is ahead")
NODES = "nodes"


class Anew:
    """The recorder of a fresh process: the first record holds everything."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._first = recorder, True

    def wants_full(self, loop: str) -> bool:
        """Return whether the record that comes is the first, or is to hold everything anyway."""
        return self._first or self._recorder.wants_full(loop)

    def write(self, record: Record) -> None:
        """Take a record."""
        self._first = False
        self._recorder.write(record)


class AheadClock:
    """A clock that jumps ahead now and then, and pauses when it is corrected: it never goes back."""

    def __init__(self, clock: Clock, draw: Draw) -> None:
        self._clock, self._draw = clock, draw
        self._offset, self._next, self._seen = (
            ZERO,
            after(clock.now(), minutes(draw.between(15, 40))),
            clock.now(),
        )
        self.jumps = 0

    def now(self) -> Instant:
        """Return the time that the loop sees."""
        real = self._clock.now()
        if real >= self._next:
            ahead = not self._offset
            self._offset = minutes(self._draw.between(1, 25)) if ahead else ZERO
            self._next = after(real, minutes(self._draw.between(5, 40)))
            self.jumps += ahead
        self._seen = max(self._seen, after(real, self._offset))
        return self._seen

    def monotonic(self) -> Duration:
        """Return the elapsed time, which does not jump."""
        return self._clock.monotonic()

    async def sleep(self, duration: Duration) -> None:
        """Sleep for the real time."""
        await self._clock.sleep(duration)


class Restarter:
    """Runs the node loop of a world, and does to its process what was chosen for the seed."""

    def __init__(self, world: World, seed: int, chosen: tuple[str, ...]) -> None:
        """Take the world, before its loops begin."""
        self._world, self._chosen = world, chosen
        self._draw = Draw(seed * 41 + 13)
        self._task: asyncio.Task[None] | None = None
        self._killed = False
        self._lost_until = world.clock.now()
        self.kills = self.losses = 0
        self.wrong: list[str] = []
        """Bugs of loops that were killed since."""
        self._clock: Clock = world.clock
        if "a clock that is ahead" in chosen:
            self._clock = AheadClock(world.clock, Draw(seed * 43 + 17))
        self._running = next(one for one in world.loops if one.entry.name == NODES)
        self._others = [one.runner for one in world.loops if not one.entry.reads_board]
        if chosen:
            self._running.runner.run = self._run  # type: ignore[method-assign]  # World.run starts it by this name

    def refusal(self) -> str:
        """Return why the write that comes now is refused; empty when it may go on, or the process is being killed."""
        now = self._world.clock.now()
        if now < self._lost_until:
            return "the lease was lost"
        if "a lost lease" in self._chosen and self._draw.chance(0.04):
            self._lost_until = after(now, seconds(self._draw.between(5, 240)))
            self.losses += 1
            return "the lease was lost"
        if "a loop that is killed" in self._chosen and self._draw.chance(0.06):
            self._kill()
        return ""

    def _kill(self) -> None:
        if self._task is None or self._killed:
            return
        self._killed = True
        self.kills += 1
        if self._draw.chance(0.5):
            # Before the call: the loop gets no further than to its next wait.
            self._task.cancel()
        else:
            asyncio.get_running_loop().call_soon(self._task.cancel)

    async def _run(self) -> None:
        """Run one process after another until the world ends."""
        while True:
            runner = self._begin()
            self._killed = False
            self._task = asyncio.ensure_future(runner.run())
            try:
                await self._task
            except asyncio.CancelledError:
                if not self._killed or not self._task.cancelled():
                    self._task.cancel()
                    raise
            self._task = None
            if runner.loop.health.bugs:
                self.wrong.append(f"before it was killed: {runner.loop.health.last_failure}")
            await self._world.clock.sleep(seconds(self._draw.between(2, 90)))

    def _begin(self) -> Runner:
        parts = replace(
            self._world.parts,
            cluster=guarded_cluster(self._world.parts.cluster, self),
            cloud=guarded_cloud(self._world.cloud, self),
            recorder=Anew(self._world.parts.recorder),
            clock=self._clock,
        )
        entry = self._running.entry
        loop: Any = entry.make(parts, self._world.settings.by_name[NODES])
        runner = Runner(loop, self._clock, waits_for=self._others)
        made = RunningLoop(entry, loop, runner)
        self._world.loops = tuple(made if one.entry.name == NODES else one for one in self._world.loops)
        return runner
