"""What the series of the three VPA programs share. Source: VPA 1.8.1, pkg/utils/metrics."""

from __future__ import annotations

from typing import Final

from kubetide.ports.clock import Clock
from kubetide.units.time import Duration

LARGEST_SIZE: Final = 20

EXECUTION_SECONDS: Final = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0),
    *(100.0, 120.0, 150.0, 240.0, 300.0),
)
"""Buckets of ``execution_latency_seconds``."""


def size_label(pods: int) -> str:
    """Return the label ``vpa_size_log2`` of a VPA with so many pods."""
    return str(min(max(pods, 1).bit_length() - 1, LARGEST_SIZE))


class Steps:
    """How long the parts of one pass took, by upstream's names of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Begin a pass."""
        self.took: dict[str, Duration] = {}
        self._begun = self._last = self._clock.monotonic()

    def done(self, step: str) -> None:
        """Note that a step is over, which began when the one before it ended."""
        now = self._clock.monotonic()
        self.took[step] = Duration(self.took.get(step, 0) + now - self._last)
        self._last = now

    def total(self) -> Duration:
        """Return the time since the pass began."""
        return Duration(self._clock.monotonic() - self._begun)
