"""The Clock port: the only way to read time and to wait.

There is one mechanism for time, the event loop's own clock plus an epoch; a loop that jumps to
its next timer makes virtual time, and nothing else changes.
"""

from __future__ import annotations

from typing import Protocol

from kubetide.units.time import Duration, Instant


class Clock(Protocol):
    """Wall time, elapsed time and sleep."""

    def now(self) -> Instant:
        """Return wall time, UTC; for timestamps and time tables."""
        ...

    def monotonic(self) -> Duration:
        """Return the time since some fixed start, for elapsed time and time-outs."""
        ...

    async def sleep(self, duration: Duration) -> None:
        """Return after that much of the event loop's time; at once if it is not positive."""
        ...
