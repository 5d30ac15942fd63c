"""Writes the figures of one segment: the changes of each tick."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path

from kubetide.explain.figures import FigureTable
from kubetide.runtime.figures.blocks import SeriesKey, encode_block
from kubetide.units.time import Instant


@dataclass(slots=True, eq=False)
class _Written:
    """A table as it was written last: numbers of the series and their values, figure by figure, each by name."""

    table: FigureTable
    names: Sequence[str]
    figures: tuple[str, ...]
    ids: list[int]
    values: list[float]


class FiguresWriter:
    """Appends to the figures of one segment; on failure it deletes its file, and never raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._failed = False
        self._ids: dict[SeriesKey, int] = {}
        self._new: list[SeriesKey] = []
        self._written: dict[str, _Written] = {}
        self._held = bytearray()

    def add(self, now: Instant, tables: Sequence[FigureTable]) -> None:
        """Take the values of the tables that differ from those taken before."""
        if self._failed:
            return
        ids: list[int] = []
        values: list[float] = []
        for table in tables:
            self._take_changed(table, ids, values)
        if not ids:
            return
        new, self._new = self._new, []
        self._held += encode_block(now, new, ids, values)

    def write(self) -> None:
        """Append what was taken."""
        if not self._held:
            return
        held, self._held = self._held, bytearray()
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            if os.write(self._file, held) != len(held):
                self._give_up()
        except OSError:
            self._give_up()

    def forget(self) -> None:
        """Drop what was taken."""
        self._held.clear()

    def close(self) -> None:
        """Write what was taken, and close the file."""
        self.write()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _take_changed(self, table: FigureTable, ids: list[int], values: list[float]) -> None:
        """Add numbers and values of the series of a table that differ from what was written."""
        before = self._written.get(table.kind)
        if before is not None and before.table == table:
            return
        figures = tuple(table.columns)
        ended: list[int] = []
        last: Mapping[str, Sequence[float | None]] = {}
        if before is None or before.figures != figures or not _same(before.names, table.names):
            before, ended = self._renamed(table, figures, before)
        else:
            last = before.table.columns
        now, at, count = before.values, 0, len(table.names)
        for figure, column in table.columns.items():
            # Most are as they were, and comparing two lists costs less than a look at their numbers.
            if column != last.get(figure):
                for number, one in enumerate(column, start=at):
                    former = now[number]
                    if one == former:
                        continue
                    value = nan if one is None else float(one)
                    # NaN is not equal to itself, and nothing new where it was there before.
                    if not (isnan(value) and isnan(former)):
                        ids.append(before.ids[number])
                        values.append(value)
                        now[number] = value
            at += count
        ids += ended
        values += [nan] * len(ended)
        before.table, before.names = table, table.names
        self._written[table.kind] = before

    def _renamed(
        self, table: FigureTable, figures: tuple[str, ...], before: _Written | None
    ) -> tuple[_Written, list[int]]:
        """Return the table as it was written, with the names that it has now, and the series that have ended."""
        known = {} if before is None else dict(zip(before.ids, before.values, strict=True))
        ids = [self._id_of(SeriesKey(table.kind, name, one)) for one in figures for name in table.names]
        values = [known.pop(number, nan) for number in ids]
        ended = [number for number, value in known.items() if not isnan(value)]
        return _Written(table, table.names, figures, ids, values), ended

    def _id_of(self, key: SeriesKey) -> int:
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._ids)
            self._new.append(key)
        return found

    def _give_up(self) -> None:
        self._failed = True
        self.close()
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return one is other or (len(one) == len(other) and list(one) == list(other))
