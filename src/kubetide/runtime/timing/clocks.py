"""Warnings about a clock that differs from the API server's.

Nothing is decided otherwise for it, as upstream's programs do not either: leases are timed by our own elapsed
time, and times that the API server has written are compared with our clock's.
"""

from __future__ import annotations

from kubetide.units.time import ZERO, Duration, format_duration, minutes, seconds

_MOST = seconds(5)
"""Clocks that differ by more are reported: ages of pods and nodes are compared with delays from 2 s on."""
_SAID_AGAIN = minutes(1)

AGREED = "the clocks of this process and of the API server agree again"


class SkewReport:
    """Returns a warning about the skew; the same sentence while the skew stays about equal."""

    def __init__(self) -> None:
        self._told = ZERO

    def sentence(self, ahead: Duration) -> str:
        """Return the warning for our clock's lead (negative: lag); empty while none is due."""
        # Once reported, it has ended at half of that, so that a skew about the bound is not reported again and again.
        if abs(ahead) <= (_MOST // 2 if self._told else _MOST):
            self._told = ZERO
            return ""
        if not self._told or abs(ahead - self._told) > _SAID_AGAIN:
            self._told = ahead
        far = Duration(abs(self._told) // seconds(1) * seconds(1))
        way, looks = ("ahead of", "older") if self._told > 0 else ("behind", "younger")
        return (
            f"the clock of this process is {format_duration(far)} {way} the API server's: pods, nodes and samples "
            f"look {looks} than they are; set this machine's clock right and start the process again, or fix the "
            "API server's"
        )
