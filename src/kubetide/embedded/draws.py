"""How long something takes, as a distribution that a seed and keys draw from.

A draw is a function of (seed, keys) alone, so one pod or node more changes no other's draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kubetide.units.seeds import uniform
from kubetide.units.time import ZERO, Duration


class Delay(Protocol):
    """A distribution of durations."""

    def draw(self, seed: int, *keys: str | int) -> Duration:
        """Return the duration for these keys; never negative."""
        ...


@dataclass(frozen=True)
class Between:
    """Evenly drawn from ``low`` to ``high``; both equal make it fixed."""

    low: Duration
    high: Duration

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(
                f"a delay goes from a smaller to a larger duration, not {self.low} to {self.high} ns"
            )

    def draw(self, seed: int, *keys: str | int) -> Duration:
        """Return the duration for these keys."""
        if self.low == self.high:
            return self.low
        return Duration(round(uniform(seed, self.low, self.high, *keys)))


def fixed(duration: Duration) -> Between:
    """A delay that is always the same."""
    return Between(duration, duration)


NO_DELAY = fixed(ZERO)
