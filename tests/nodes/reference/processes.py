"""What upstream does beside the loop: its goroutines, as generators that yield how long they sleep."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tests.nodes.reference.world import World

from kubetide.units.time import Duration, Instant, after

Process = Generator[Duration, None, None]
"""Yields how long it sleeps."""


@dataclass
class Processes:
    """Processes by the time at which they go on; of those at one time, first come, first served."""

    sleeping: list[tuple[Instant, int, Process]] = field(default_factory=list)
    begun: int = 0

    def start(self, process: Process, at: Instant) -> None:
        """Let a process begin at a time."""
        self.begun += 1
        heappush(self.sleeping, (at, self.begun, process))

    def run(self, world: World, until: Instant) -> None:
        """Let all processes go on up to a time, which is the world's afterwards."""
        while self.sleeping and self.sleeping[0][0] <= until:
            world.now, _, process = heappop(self.sleeping)
            pause = next(process, None)
            if pause is not None:
                self.start(process, after(world.now, pause))
        world.now = until
