"""The loop's memory of an HPA between ticks: recommendations and scale events.

Both stand in slots. A slot whose entry is outdated is used again, the last such one first; else
the list grows and never shrinks. Source: horizontal controller v1.36. Recommendations come every
tick, so they are held in columns; scale events are rare, so they are lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.forecast.rows import ForecastMemory
from kubetide.objects.meta import Key
from kubetide.units.vectors import Int64Vector

UNUSED = -(1 << 63)
"""The time of a slot that holds nothing."""

_FIRST_ROWS, _FIRST_SLOTS = 16, 8


class Recommendation(NamedTuple):
    """A raw proposal and its time, ns."""

    at: int
    replicas: int


class ScaleEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An executed change: number of replicas (positive both ways), and time, ns."""

    at: int
    change: int
    outdated: bool = False


class ScaleEvents(msgspec.Struct, omit_defaults=True):
    """The changes of one HPA's target, by direction, in upstream's slot order."""

    ups: list[ScaleEvent] = []
    downs: list[ScaleEvent] = []

    def copy(self) -> ScaleEvents:
        """Return an independent copy."""
        return ScaleEvents(list(self.ups), list(self.downs))


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An executed change, upwards positive, and its time, ns."""

    at: int
    change: int


class OptionMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of an HPA's options (``options``); HPAs without options have none.

    Attributes:
        looked_at: When it was decided about last, ns.
        last_good: The last proposal that metrics made.
        changes: Of the last hour, oldest first.
        rose_at: When the number was raised last, ns.
    """

    looked_at: int | None = None
    last_good: int | None = None
    changes: tuple[Change, ...] = ()
    rose_at: int | None = None


class MemoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of one HPA in a full record.

    Attributes:
        recommendations: In slot order; empty for an HPA that has never been seen.
        selector: The one last seen on its target.
        options: What its options remember; ``forecast`` its forecasts.
        status_written: When its status was last written, ns; only with ``metrics_status_period``.
        selector_unread: Whether that selector has never been read for a decision.
    """

    namespace: str
    name: str
    recommendations: Sequence[Recommendation] = ()
    events: ScaleEvents = msgspec.field(default_factory=ScaleEvents)
    selector: str = ""
    options: OptionMemory | None = None
    forecast: ForecastMemory | None = None
    status_written: int | None = None
    selector_unread: bool = False


def remember_event(events: list[ScaleEvent], event: ScaleEvent, longest_period: int) -> None:
    """Store an event in upstream's slot; mark those older than the longest period as outdated."""
    cutoff = event.at - longest_period
    slot = -1
    for index, old in enumerate(events):
        if not old.outdated and old.at < cutoff:
            events[index] = msgspec.structs.replace(old, outdated=True)
        if events[index].outdated:
            slot = index
    if slot < 0:
        events.append(event)
    else:
        events[slot] = event


def remember_change(events: ScaleEvents, change: Change, up_period: int, down_period: int) -> None:
    """Store a change by its direction; the periods are the longest of the policies, ns."""
    if change.change > 0:
        remember_event(events.ups, ScaleEvent(change.at, change.change), up_period)
    elif change.change < 0:
        remember_event(events.downs, ScaleEvent(change.at, -change.change), down_period)


class Recommendations:
    """The recommendations of all HPAs: slots of one row per HPA, so that queries over all rows use whole slots.

    Attributes:
        at: (slots, rows) int64 times, ``UNUSED`` where a slot holds nothing.
        replicas: (slots, rows) int64.
        count: (rows,) int64 slots in use; they are the first ones.
    """

    def __init__(self) -> None:
        self.at = np.full((_FIRST_SLOTS, _FIRST_ROWS), UNUSED, np.int64)
        self.replicas = np.zeros((_FIRST_SLOTS, _FIRST_ROWS), np.int64)
        self.count: Int64Vector = np.zeros(_FIRST_ROWS, np.int64)
        self._rows: dict[Key, int] = {}
        self._free: list[int] = []

    def keys(self) -> Sequence[Key]:
        """Return the HPAs that have a row."""
        return tuple(self._rows)

    def row(self, key: Key) -> int:
        """Return the row of an HPA, a new one if it has none."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._free.pop() if self._free else len(self._rows)
            if row == len(self.count):
                self._grow(rows=2 * row)
        return row

    def has(self, key: Key) -> bool:
        """Return whether there is any recommendation of an HPA."""
        row = self._rows.get(key)
        return row is not None and bool(self.count[row])

    def of(self, key: Key) -> list[Recommendation]:
        """Return the recommendations of an HPA in slot order."""
        return [Recommendation(*pair) for pair in self.pairs(key)]

    def pairs(self, key: Key) -> Sequence[tuple[int, int]]:
        """Return the recommendations of ``of`` as plain pairs, which cost less."""
        row = self._rows.get(key)
        if row is None:
            return []
        used = int(self.count[row])
        return [*zip(self.at[:used, row].tolist(), self.replicas[:used, row].tolist(), strict=True)]

    def put(self, key: Key, recommendations: Sequence[Recommendation]) -> None:
        """Replace the recommendations of an HPA, in slot order."""
        for one in recommendations:
            self.store_one(key, -1, one.at, one.replicas)

    def forget(self, key: Key) -> None:
        """Drop the recommendations of an HPA."""
        row = self._rows.pop(key, None)
        if row is not None:
            self.at[:, row] = UNUSED
            self.count[row] = 0
            self._free.append(row)

    def store_one(self, key: Key, slot: int, at: int, replicas: int) -> None:
        """Store one recommendation of an HPA; slot -1 is a new one."""
        row = self.row(key)
        if slot < 0:
            slot = int(self.count[row])
            self.count[row] += 1
            if slot >= len(self.at):
                self._grow(slots=slot + _FIRST_SLOTS)
        self.at[slot, row] = at
        self.replicas[slot, row] = replicas

    def store(self, rows: Int64Vector, slots: Int64Vector, at: int, replicas: Int64Vector) -> None:
        """Store one recommendation per row, each row at most once; slot -1 is a new one."""
        if not len(rows):
            return
        new = slots < 0
        places = np.where(new, self.count[rows], slots)
        widest = int(places.max())
        if widest >= len(self.at):
            self._grow(slots=max(widest + 1, len(self.at) + _FIRST_SLOTS))
        self.at[places, rows] = at
        self.replicas[places, rows] = replicas
        self.count[rows] += new

    def used_by(self, rows: Int64Vector | slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return times and replicas of these rows, (slots in use, rows) each."""
        used = int(self.count[rows].max(initial=0))
        return self.at[:used, rows], self.replicas[:used, rows]

    def _grow(self, *, rows: int = 0, slots: int = 0) -> None:
        old_slots, old_rows = self.at.shape
        shape = max(slots, old_slots), max(rows, old_rows)
        at, replicas, count = (
            np.full(shape, UNUSED, np.int64),
            np.zeros(shape, np.int64),
            np.zeros(shape[1], np.int64),
        )
        at[:old_slots, :old_rows], replicas[:old_slots, :old_rows], count[:old_rows] = (
            self.at, self.replicas, self.count,
        )  # fmt: skip
        self.at, self.replicas, self.count = at, replicas, count
