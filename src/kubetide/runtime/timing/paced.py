"""A live run's time: at the requested speed, and never ahead of the work.

Between two timers nothing happens in a run, so its time may pass at any speed; but work that is due
has to be done before its time can go on. Time here stands still while callbacks run, moves to the
next timer at most, and waits for it as long as the speed says. Where the work takes longer than the
speed leaves, the clock is late and makes up for it as soon as there is less to do. A run without
sockets thus does the same at every speed, and the same as in virtual time.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

from kubetide.runtime.timing.virtual import IntegerTimeLoop

_MOST_TO_MAKE_UP_NS = 5_000_000_000
"""Real time. A run that was stopped for an hour goes on at its speed, without an hour of hurry."""

_KEEPS_UP = 0.95
"""Share of the speed from which a run has been as fast as it was asked to be."""


class Pace:
    """The requested and the real speed of a run.

    Attributes:
        speed: Times real time, asked for.
        reached: Times real time, from the beginning to the last timer so far; 0 before.
    """

    def __init__(self, speed: float) -> None:
        if not speed > 0:
            raise ValueError(f"speed must be positive, not {speed}")
        self.speed = speed
        self.reached = 0.0

    @property
    def lost(self) -> bool:
        """Whether the work took longer than the speed allowed."""
        return 0 < self.reached < self.speed * _KEEPS_UP


class PacedLoop(IntegerTimeLoop, asyncio.SelectorEventLoop):
    """An event loop at a pace; built by ``runtime.clock.run_paced``."""

    _selector: selectors.BaseSelector
    _process_events: Callable[[list[Any]], None]

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace
        self._begun_ns = self._base_ns = time.monotonic_ns()

    def _run_once(self) -> None:
        events = self._selector.select(self._wait_s())
        self._process_events(events)
        # While work is ready, time stands still: what one instant brings about happens at that instant.
        # Clients on a socket may keep a run busy for good, and expect time to pass meanwhile.
        if events or not self._ready:
            self._advance()
        self._run_ready()

    def _wait_s(self) -> float | None:
        """Return the real seconds until the next timer."""
        if self._ready or self._stopping:
            return 0
        due = self._next_due()
        if due is None:
            return None
        return max(0.0, (due - self._target_ns()) / self._pace.speed / 1e9)

    def _target_ns(self) -> int:
        """Return the time that it should be by the machine's clock."""
        return int((time.monotonic_ns() - self._base_ns) * self._pace.speed)

    def _advance(self) -> None:
        target, due = self._target_ns(), self._next_due()
        now = target if due is None else min(target, due)
        if due is not None and 0 <= due - target < self._pace.speed:
            now = due  # nearer than one step of the machine's clock
        self._move_to(now)
        late = target - self._now_ns - int(_MOST_TO_MAKE_UP_NS * self._pace.speed)
        if late > 0:
            self._base_ns += int(late / self._pace.speed)
        self._pace.reached = self._now_ns / max(time.monotonic_ns() - self._begun_ns, 1)
