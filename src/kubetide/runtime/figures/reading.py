"""Reads the figures of a folder, also while a run writes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kubetide.runtime.figures.blocks import SeriesKey, decode_blocks
from kubetide.runtime.recording.fingerprint import Fingerprint
from kubetide.runtime.recording.index_lines import figures_of, index_of
from kubetide.runtime.recording.records import recorded_loops, segments
from kubetide.units.time import Instant, minutes
from kubetide.units.vectors import Float64Vector, Int64Vector

_GAP = minutes(3)
"""Between two processes: what was known before holds no longer than this."""

_TAIL = 1 << 16
"""Bytes that hold the last line of an index, but for one of a tick about thousands."""


_MANY = 256
"""Series of a segment from which on they are put in order once, and not looked for each by itself."""


class Column(NamedTuple):
    """One series: each value holds from its time (ns) to the next; NaN where unknown."""

    times: Int64Vector
    values: Float64Vector


class FigureHistory:
    """The figures of a folder, cached; ``follow`` reads new ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segments: dict[str, list[_Segment]] = {}

    def follow(self) -> None:
        """Read what was written since the last call. Raises RecordError if there are no records."""
        before, self._segments = self._segments, {}
        for loop in recorded_loops(self._folder):
            known = {one.path: one for one in before.get(loop, ()) if one.is_there()}
            there = [known.get(path) or _Segment(path) for path in segments(self._folder, loop)]
            for one in there:
                one.read()
            self._segments[loop] = there

    @property
    def is_there(self) -> bool:
        """Whether any figure was recorded: older versions recorded none."""
        return any(one.series for some in self._segments.values() for one in some)

    def series(self) -> list[SeriesKey]:
        """Return all series, ordered."""
        return sorted({key for some in self._segments.values() for one in some for key in one.series})

    def column(self, key: SeriesKey) -> Column:
        """Return the whole series. Raises KeyError if there is none."""
        times: list[Int64Vector] = []
        values: list[Float64Vector] = []
        for some in self._segments.values():
            pieces = [(one, *one.column(key)) for one in some if key in one.series]
            for number, (segment, at, value) in enumerate(pieces):
                times.append(at)
                values.append(value)
                begins = pieces[number + 1][1] if number + 1 < len(pieces) else at[:0]
                ended = segment.end()
                if len(begins) and begins[0] - ended > _GAP:
                    times.append(np.array([ended], np.int64))
                    values.append(np.array([np.nan]))
        if not times:
            raise KeyError(key)
        return _without_repeats(np.concatenate(times), np.concatenate(values))

    def at(self, key: SeriesKey, time: Instant) -> float:
        """Return the value of a series at a time; NaN if unknown. Raises KeyError."""
        times, values = self.column(key)
        index = int(np.searchsorted(times, time, side="right")) - 1
        return float("nan") if index < 0 else float(values[index])

    def span(self) -> tuple[Instant, Instant] | None:
        """Return the first and last time of figures; None for none."""
        some = [one for every in self._segments.values() for one in every if one.series]
        if not some:
            return None
        return Instant(min(one.start() for one in some)), Instant(max(one.end() for one in some))


def _without_repeats(times: Int64Vector, values: Float64Vector) -> Column:
    """Leave out what says again what holds; of several values at one time the last counts."""
    if not len(times):
        return Column(times, values)
    last = np.append(times[1:] != times[:-1], True)
    times, values = times[last], values[last]
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    changed = np.insert(~same, 0, True)
    return Column(times[changed], values[changed])


class _Segment:
    """The figures of one segment as far as they were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.series: dict[SeriesKey, int] = {}
        self._offset = 0
        self._before = Fingerprint()
        self._now: list[Int64Vector] = [np.zeros(0, np.int64)]
        self._ids: list[Int64Vector] = [np.zeros(0, np.int64)]
        self._values: list[Float64Vector] = [np.zeros(0, np.float64)]
        self._ordered: tuple[Int64Vector, Float64Vector, Int64Vector] | None = None

    def is_there(self) -> bool:
        """Return whether the file still holds what was read; a new run writes under the same name."""
        return self._before.is_in(figures_of(self.path))

    def read(self) -> None:
        try:
            with figures_of(self.path).open("rb") as file:
                file.seek(self._offset)
                data = file.read()
                self._take(data)
                self._before.note(file, self._offset)
        except OSError:
            return  # an older version, a disk that was full, or a segment that has just gone

    def _take(self, data: bytes) -> None:
        begin = self._offset
        for block, end in decode_blocks(data):
            self._offset = begin + end
            self._ordered = None
            for key in block.new:
                self.series[key] = len(self.series)
            self._now.append(np.full(len(block.ids), block.now, np.int64))
            self._ids.append(block.ids)
            self._values.append(block.values)

    def column(self, key: SeriesKey) -> tuple[Int64Vector, Float64Vector]:
        number = self.series[key]
        if len(self.series) < _MANY:
            now, ids, values = self._joined()
            mine = ids == number
            return now[mine], values[mine]
        if self._ordered is None:
            now, ids, values = self._joined()
            order = np.argsort(ids, kind="stable")
            starts = np.searchsorted(ids[order], np.arange(len(self.series) + 1))
            self._ordered = now[order], values[order], starts
        now, values, starts = self._ordered
        part = slice(int(starts[number]), int(starts[number + 1]))
        return now[part], values[part]

    def start(self) -> int:
        return int(self._joined()[0][0])

    def end(self) -> int:
        """Return when the last record of the segment was written, as far as it is known."""
        return max(int(self._joined()[0][-1]), _last_time(self.path))

    def _joined(self) -> tuple[Int64Vector, Int64Vector, Float64Vector]:
        if len(self._now) > 1:
            self._now = [np.concatenate(self._now)]
            self._ids = [np.concatenate(self._ids)]
            self._values = [np.concatenate(self._values)]
        return self._now[0], self._ids[0], self._values[0]


def _last_time(segment: Path) -> int:
    """Return the time of the last whole line of a segment's index; 0 where it is not known."""
    try:
        with index_of(segment).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            data = file.read()
        end = data.rfind(b"\n")
        return int(data[data.rfind(b"\n", 0, end) + 1 : end].split(b" ", 3)[2])
    except (OSError, ValueError, IndexError):
        return 0
