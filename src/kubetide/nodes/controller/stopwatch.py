"""Measures how long the parts of a tick take, in elapsed time."""

from __future__ import annotations

from kubetide.nodes.phases import Part
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration


class Stopwatch:
    """Holds the phases of the present tick until ``take``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[Part, Duration] = {}
        self._phases: list[tuple[Part, Duration]] = []

    def restart(self) -> None:
        """Begin a tick: end the wait for it, and drop what the tick before left."""
        self._phases.clear()
        self.end("loopWait")
        self._begun.clear()

    def begin(self, part: Part) -> None:
        """Start the part."""
        self._begun[part] = self._clock.monotonic()

    def end(self, part: Part) -> None:
        """End the part; one that has not begun is ignored."""
        begun = self._begun.pop(part, None)
        if begun is not None:
            self._phases.append((part, Duration(self._clock.monotonic() - begun)))

    def take(self) -> list[tuple[Part, Duration]]:
        """Return the parts that have ended since the last call, in order of their end."""
        phases, self._phases = self._phases, []
        return phases
