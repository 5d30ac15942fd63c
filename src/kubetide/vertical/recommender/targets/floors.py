"""Temporary minimums of recommendations after OOM kills and roll-backs.

Both are options beyond upstream. A floor holds for one container of one VPA; it raises target and bounds to itself
after margin and confidence, and before policies cap them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np

from kubetide.units.time import Instant
from kubetide.units.vectors import Int64Vector

Place = tuple[str, str, str, str]
"""Namespace and name of a VPA, container, resource."""

Why = Literal["OomFloor", "RolledBack"]


class Floor(msgspec.Struct, frozen=True):
    """At least ``amount`` (millicores or bytes) until a time; ``at`` is when the need was found."""

    amount: int
    at: Instant
    until: Instant
    why: Why


class Floors:
    """The active floors."""

    def __init__(self) -> None:
        self.held: dict[Place, Floor] = {}

    def put(self, place: Place, floor: Floor) -> None:
        """Add a floor; of two the higher amount holds, until the later time."""
        old = self.held.get(place)
        if old is not None and old.amount > floor.amount:
            floor = msgspec.structs.replace(old, until=max(old.until, floor.until))
        self.held[place] = floor

    def expire(self, now: Instant) -> None:
        """Drop expired floors."""
        for place in [place for place, floor in self.held.items() if floor.until <= now]:
            del self.held[place]

    def keep_only(self, vpas: Iterable[tuple[str, str]]) -> None:
        """Drop the floors of deleted VPAs."""
        known = set(vpas)
        for place in [place for place in self.held if place[:2] not in known]:
            del self.held[place]

    def amounts(self, places: Sequence[Place]) -> Int64Vector:
        """Return the floor of each container, 0 without one."""
        found = (self.held.get(place) for place in places)
        return np.fromiter((0 if one is None else one.amount for one in found), np.int64, len(places))
