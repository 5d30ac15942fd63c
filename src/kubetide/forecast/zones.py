"""Time zones of workloads: where a zone's offset changes, the phase of days and weeks changes."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from kubetide.units.time import Duration
from kubetide.units.vectors import Int64Vector


class Zones:
    """The zone of each slot that has one; all others use UTC."""

    def __init__(self, step: Duration) -> None:
        self._step = step
        self._of: dict[int, str] = {}
        self._size = 0

    @property
    def any(self) -> bool:
        """Return whether any slot has a zone of its own."""
        return bool(self._of)

    def put(self, slot: int, zone: str) -> None:
        """Set the zone of a slot; empty for UTC."""
        if zone:
            self._of[slot] = zone
        else:
            self._of.pop(slot, None)
        self._size = max(self._size, slot + 1)

    def clear(self, slot: int) -> None:
        """Reset a slot to UTC."""
        self._of.pop(slot, None)

    def shift(self, at: int, back: int) -> NDArray[np.int64]:
        """Return (slots up to the last with a zone,): by how many steps the same time of day was shifted ``back`` ago."""
        found = np.zeros(self._size, np.int64)
        for slot, zone in self._of.items():
            now = _offset_s(zone, at * self._step // 1_000_000_000)
            then = _offset_s(zone, (at - back) * self._step // 1_000_000_000)
            found[slot] = (now - then) * 1_000_000_000 // self._step
        return found

    def shifts(self, slot: int, at: Int64Vector, then: Int64Vector) -> Int64Vector:
        """Return (steps,): by how many steps a slot's time of day was shifted at ``then`` against ``at``."""
        zone = self._of.get(slot)
        if zone is None:
            return np.zeros(len(at), np.int64)
        return (self._offsets_s(zone, at) - self._offsets_s(zone, then)) * 1_000_000_000 // self._step

    def _offsets_s(self, zone: str, steps: Int64Vector) -> Int64Vector:
        quarters, which = np.unique(steps * self._step // 1_000_000_000 // 900, return_inverse=True)
        return np.array([_offset_of_quarter(zone, one) for one in quarters.tolist()], np.int64)[which]


def is_zone(name: str) -> bool:
    """Return whether there is a time zone of that name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _offset_s(zone: str, epoch_s: int) -> int:
    # Offsets change on whole quarters of an hour.
    return _offset_of_quarter(zone, epoch_s // 900)


@lru_cache(maxsize=1 << 14)
def _offset_of_quarter(zone: str, quarter: int) -> int:
    offset = datetime.fromtimestamp(quarter * 900, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
