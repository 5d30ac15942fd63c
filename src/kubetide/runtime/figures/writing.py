"""Writes the figures of one segment: of each tick what has changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kubetide.explain.figures import FigureTable
from kubetide.runtime.figures.blocks import Block, SeriesKey, encode_block
from kubetide.units.time import Instant

_NO_IDS = np.zeros(0, np.int64)
_NO_VALUES = np.zeros(0, np.float64)


@dataclass(slots=True, eq=False)
class _Written:
    """A table as it was written last: (figures, names) numbers of the series and their values."""

    table: FigureTable
    names: Sequence[str]
    figures: tuple[str, ...]
    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class FiguresWriter:
    """Appends to the figures of one segment; one that fails takes its file away, and never raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._failed = False
        self._ids: dict[SeriesKey, int] = {}
        self._new: list[SeriesKey] = []
        self._written: dict[str, _Written] = {}

    def add(self, now: Instant, tables: Sequence[FigureTable]) -> None:
        """Append what of the tables differs from what was written before."""
        if self._failed or not tables:
            return
        changed = [self._changed(table) for table in tables]
        ids = np.concatenate([one for one, _ in changed])
        if not len(ids):
            return
        new, self._new = self._new, []
        data = encode_block(Block(now, new, ids, np.concatenate([one for _, one in changed])))
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            if os.write(self._file, data) != len(data):
                self._give_up()
        except OSError:
            self._give_up()

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _changed(self, table: FigureTable) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return numbers and values of the series of a table that differ from what was written."""
        last = self._written.get(table.kind)
        if last is not None and last.table == table:
            return _NO_IDS, _NO_VALUES
        figures = tuple(table.columns)
        shape = len(figures), len(table.names)
        values = np.array([table.columns[figure] for figure in figures], np.float64).reshape(shape)
        before = last
        gone: list[int] = []
        if before is None or before.figures != figures or not _same(before.names, table.names):
            before, gone = self._renamed(table, figures, before)
        differs = (values != before.values) & ~(np.isnan(values) & np.isnan(before.values))
        self._written[table.kind] = _Written(table, table.names, figures, before.ids, values)
        return (
            np.concatenate([before.ids[differs], np.array(gone, np.int64)]),
            np.concatenate([values[differs], np.full(len(gone), np.nan)]),
        )

    def _renamed(
        self, table: FigureTable, figures: tuple[str, ...], before: _Written | None
    ) -> tuple[_Written, list[int]]:
        """Return the table as it was written, with the names that it has now, and the series that have ended."""
        known: dict[int, float] = {}
        if before is not None:
            known = dict(zip(before.ids.ravel().tolist(), before.values.ravel().tolist(), strict=True))
        ids = [[self._id_of(SeriesKey(table.kind, name, one)) for name in table.names] for one in figures]
        values = [[known.pop(number, nan) for number in row] for row in ids]
        shape = len(figures), len(table.names)
        ended = [number for number, value in known.items() if not isnan(value)]
        array = np.array(ids, np.int64).reshape(shape)
        return _Written(
            table, table.names, figures, array, np.array(values, np.float64).reshape(shape)
        ), ended

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
