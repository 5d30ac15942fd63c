"""Stabilization: recommendations of the recent past hold a proposal back.

Source: horizontal controller v1.36. Without ``spec.behavior`` only scale-downs are held back, and a
sample of exactly the window's age still counts; with it each direction has a window, and only what
is strictly newer counts. Recommendations are pairs of when they were made and of how many replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetide.units.time import Duration, Instant


class Stabilized(NamedTuple):
    """The stabilized number, and the slot for the raw proposal (-1: a new one)."""

    replicas: int
    slot: int


def stabilize(
    recommendations: Sequence[tuple[int, int]], proposal: int, *, window: Duration, now: Instant
) -> Stabilized:
    """Return the largest recommendation of the window, for HPAs without behavior."""
    cutoff = now - window
    highest, slot = proposal, -1
    for index, (at, replicas) in enumerate(recommendations):
        if at < cutoff:
            slot = index
        elif replicas > highest:
            highest = replicas
    return Stabilized(highest, slot)


def stabilize_both_ways(
    recommendations: Sequence[tuple[int, int]],
    proposal: int,
    current: int,
    *,
    up: Duration,
    down: Duration,
    now: Instant,
) -> Stabilized:
    """Return ``current`` moved into the range of the lowest (up window) to the highest (down window) recommendation."""
    up_cutoff, down_cutoff = now - up, now - down
    both = min(up_cutoff, down_cutoff)
    lowest = highest = proposal
    slot = -1
    for index, (at, replicas) in enumerate(recommendations):
        if at > up_cutoff and replicas < lowest:
            lowest = replicas
        if at > down_cutoff and replicas > highest:
            highest = replicas
        if at < both:
            slot = index
    return Stabilized(min(max(current, lowest), highest), slot)
