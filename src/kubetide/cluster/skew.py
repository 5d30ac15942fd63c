"""How far this process's clock is from a server's, by the ``Date`` of its answers.

A server stamps an answer between the sending of the request and the arrival of the answer, in whole seconds
(RFC 9110, 6.6.1): that bounds the difference from both sides. What the bounds leave open is not called skew.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from kubetide.ports.clock import Clock
from kubetide.units.time import ZERO, Duration, Instant, between, seconds

_STAMP = seconds(1)
_LONGEST = seconds(5)
"""An answer that took longer says too little to go by."""


def skew_of(stamped: Instant, sent: Instant, arrived: Instant) -> Duration:
    """Return how far our clock is ahead of the server's at the least; negative where it is behind.

    Args:
        stamped: What the server's clock showed, its fraction of a second cut off.
        sent: What ours showed before; ``arrived`` after.
    """
    if sent > stamped + _STAMP:
        return between(Instant(stamped + _STAMP), sent)
    return Duration(min(between(stamped, arrived), 0))


def read_date(text: str) -> Instant | None:
    """Read an HTTP date; None for what is none."""
    try:
        found = parsedate_to_datetime(text)
        return Instant(int(found.replace(tzinfo=found.tzinfo or UTC).timestamp()) * 10**9)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


class Skew:
    """The skew, by the last answer that had a date."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = ZERO
        """How far our clock is ahead of the server's at the least; negative where it is behind, 0 where they agree."""

    def server_now(self) -> Instant:
        """Return the time by the server's clock: for comparing with times that it has written."""
        return Instant(self._clock.now() - self.ahead)

    def note(self, date: str, took: Duration) -> None:
        """Take in the ``Date`` of an answer that has just arrived, ``took`` after its request was sent."""
        stamped = read_date(date)
        if stamped is None or took > _LONGEST:
            return
        now = self._clock.now()
        self.ahead = skew_of(stamped, Instant(now - took), now)
