"""Columns of a timeline for charts, at most a few thousand points long.

Steps are gathered into buckets of equal length. A bucket keeps the largest number of pending pods, so that no peak is
lost, and the last value of everything that is a count or a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from kubetide.simulate.outcome.timeline import Timeline
from kubetide.units.time import Instant

MOST_POINTS = 5000
"""Points of one series."""

MOST_VALUES = 600_000
"""Points of all series together: a page of hundreds of services stays a file that opens."""

FEWEST_POINTS = 500

Number = TypeVar("Number", int, float)


def bucket_size(steps: int, *, series: int) -> int:
    """Return how many steps form one point."""
    points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_VALUES // max(series, 1)))
    return max(1, -(-steps // points))


def peaks(values: Sequence[Number], size: int) -> list[Number]:
    """Return the largest value of each bucket; the last bucket may be incomplete."""
    return _buckets(values, size, max)


def lasts(values: Sequence[Number], size: int) -> list[Number]:
    """Return the last value of each bucket; the last bucket may be incomplete."""
    return _buckets(values, size, lambda bucket: bucket[-1])


def _buckets(values: Sequence[Number], size: int, pick: Callable[[Sequence[Number]], Number]) -> list[Number]:
    if size == 1:
        return list(values)
    return [pick(values[start : start + size]) for start in range(0, len(values), size)]


def times_of(timeline: Timeline, steps: int, size: int) -> list[float]:
    """Return when each bucket ends, in seconds since 1970; the columns of one step end one step apart."""
    first = epoch_seconds(timeline.start)
    ends = (min(start + size, steps) - 1 for start in range(0, steps, size))
    return [round(first + end * timeline.step_s, 3) for end in ends]


def lost_minutes(violated: Sequence[bool], step_s: float) -> list[int]:
    """Return the SLO minutes lost up to each step; the last value is the summary's."""
    minutes = [int(index * step_s // 60) if bad else -1 for index, bad in enumerate(violated)]
    latest = accumulate(minutes, max, initial=-1)
    return list(accumulate(int(minute > before) for minute, before in zip(minutes, latest, strict=False)))


def epoch_seconds(at: Instant) -> float:
    """Return a time as seconds since 1970, exact to the millisecond, as web pages use it."""
    return at // 1_000_000 / 1000
