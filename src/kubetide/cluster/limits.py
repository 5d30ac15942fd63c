"""How fast a client may ask, decided purely: a token bucket.

Source: client-go v1.36 (util/flowcontrol): ``qps`` tokens a second, ``burst`` at most in store.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubetide.units.time import ZERO, Duration, minutes, seconds

_DEADLINE = seconds(60)
_STALL = minutes(3)
_ANSWER_BYTES = 512 << 20
_OBJECTS = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds on what one client asks of a server.

    Attributes:
        qps: Requests a second over the long run (``--kube-api-qps``); 0 for no bound. Watches do not count.
        burst: Requests that may come at once (``--kube-api-burst``).
        writes: Writes that may be under way at once.
        deadline: How long a request may take, repeats and their pauses included; watches have none.
        stall: After how long without a word, not even a bookmark, a watch is given up.
        answer_bytes: Of one answer, out of its compression; watches and streamed lists have no such bound.
        objects: Of one list, all of its parts together, streamed or not.
    """

    qps: float = 0.0
    burst: int = 10
    writes: int = 32
    deadline: Duration = _DEADLINE
    stall: Duration = _STALL
    answer_bytes: int = _ANSWER_BYTES
    objects: int = _OBJECTS

    def __post_init__(self) -> None:
        counts = self.burst, self.writes, self.answer_bytes, self.objects
        if self.qps < 0 or min(counts) < 1 or self.deadline <= 0 or self.stall <= 0:
            raise ValueError(f"{self}: qps must be 0 or more, numbers 1 or more, times positive")


class TokenBucket:
    """A rate limit: how long each request has to wait; they go in the order in which they come."""

    def __init__(self, qps: float, burst: int) -> None:
        self._step = round(1e9 / qps) if qps else 0
        self._spare = (burst - 1) * self._step
        self._next = 0
        """When the bucket would be full again, less one token (the generic cell rate algorithm)."""

    def wait_of(self, now: Duration) -> Duration:
        """Take a token and return the time until it is there; ``now`` never goes back."""
        if not self._step:
            return ZERO
        due = max(self._next, now)
        self._next = due + self._step
        return Duration(max(due - self._spare - now, 0))
