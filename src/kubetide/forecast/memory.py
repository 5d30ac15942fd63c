"""The memory of one workload in records: columns as bytes, onsets without the empty steps between."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.forecast.calendar import Calendar


class CalendarMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One slot of a calendar. Rings are stored as in memory, so they are valid for a calendar at the same ``index``.

    Attributes:
        index: The last step that was taken in.
        rings: means, peaks, forecast, periods, hits, trials and peaks of hours.
        onset_rows, onset_sizes: Where the ring of onsets is not empty.
    """

    index: int
    rings: tuple[bytes, ...]
    onset_rows: bytes
    onset_sizes: bytes


def dumped(calendar: Calendar, slot: int) -> CalendarMemory | None:
    """Return the memory of a calendar's slot; None before the first step."""
    if calendar.index is None:
        return None
    onsets = calendar.onsets[:, slot]
    rows = np.flatnonzero(onsets)
    return CalendarMemory(
        index=calendar.index,
        rings=tuple(ring[:, slot].tobytes() for ring in _rings(calendar)),
        onset_rows=rows.astype(np.int32).tobytes(),
        onset_sizes=onsets[rows].tobytes(),
    )


def restore(calendar: Calendar, slot: int, memory: CalendarMemory) -> bool:
    """Restore a slot's memory; return False, and change nothing, if it does not fit."""
    rings = _rings(calendar)
    sizes = [len(ring) * ring.dtype.itemsize for ring in rings]
    if [len(data) for data in memory.rings] != sizes or calendar.index not in {None, memory.index}:
        return False
    calendar.index = memory.index
    for ring, data in zip(rings, memory.rings, strict=True):
        ring[:, slot] = np.frombuffer(data, ring.dtype)
    calendar.onsets[:, slot] = 0
    rows = np.frombuffer(memory.onset_rows, np.int32)
    calendar.onsets[rows, slot] = np.frombuffer(memory.onset_sizes, np.float16)
    return True


def _rings(calendar: Calendar) -> tuple[NDArray[np.generic], ...]:
    return (
        calendar.means,
        calendar.peaks,
        calendar.forecast,
        calendar.period_of,
        calendar.hits,
        calendar.trials,
        calendar.hour_peaks,
    )
