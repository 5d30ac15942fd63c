"""How long the parts of a tick took, by the clock's elapsed time."""

from __future__ import annotations

from kubetide.nodes.phases import Part
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration


class Stopwatch:
    """Keeps the phases of the present tick until somebody takes them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[Part, Duration] = {}
        self._phases: list[tuple[Part, Duration]] = []

    def restart(self) -> None:
        """Begin a tick: ends the wait for it, and forget what the tick before has left."""
        self._phases.clear()
        self.end("loopWait")
        self._begun.clear()

    def begin(self, part: Part) -> None:
        """Note that the part begins."""
        self._begun[part] = self._clock.monotonic()

    def end(self, part: Part) -> None:
        """Note that the part is over; one that has not begun is ignored."""
        begun = self._begun.pop(part, None)
        if begun is not None:
            self._phases.append((part, Duration(self._clock.monotonic() - begun)))

    def take(self) -> list[tuple[Part, Duration]]:
        """Return the parts that have ended since the last call, in the order in which they did."""
        phases, self._phases = self._phases, []
        return phases
