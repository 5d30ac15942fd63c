"""Cached results about pod classes, and their validity.

Node objects (labels, taints) are evaluated once per class, and again when a node changes; what is left
on nodes is compared each time: one vector comparison per resource that the class asks for. Only
classes whose verdict depends on other pods have judges as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kubetide.scheduling.columns.columns import Column, cells_of
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.explain import refused_everywhere
from kubetide.scheduling.filters.base import Judge
from kubetide.scheduling.filters.dynamic_resources import DeviceJudge
from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.pods.pod_class import ColumnKey, PodClass
from kubetide.scheduling.snapshot.lineage import Lineage
from kubetide.scheduling.snapshot.log import ChangeLog
from kubetide.scheduling.snapshot.store import SnapshotStore
from kubetide.scheduling.thresholds import FIRST_FIT_ROWS_ONE_BY_ONE
from kubetide.units.recent import Recent
from kubetide.units.vectors import BoolVector

_MOST_BYTES = 64 << 20
"""Of what is known about classes, roughly, in each of two halves."""
_MAX_TEMPLATES = 64


class Passing:
    """Which node objects pass, by row. One object for all classes of the same ``PodClass.node_key``.

    Attributes:
        static: Per row, whether the node object passes.
        cells: The same as Python bools.
    """

    __slots__ = ("_lineage", "_of_copies", "_vector", "cells", "static")

    def __init__(self) -> None:
        self._lineage = Lineage(-1, ())
        self._of_copies: dict[Rows, bool] = {}
        self._vector: BoolVector = np.zeros(0, np.bool_)
        self.static = self._vector
        self.cells: memoryview = memoryview(b"")

    def update(self, pod_class: PodClass, rows: Rows, lineage: Lineage) -> None:
        """Update the result, for any class of the same key."""
        before, self._lineage = self._lineage, lineage
        if before is lineage:
            return
        alike = not (pod_class.names_nodes or pod_class.claims or pod_class.devices is not None)
        if before.epoch == lineage.epoch and alike and rows.n <= len(self._vector):
            seen = len(before.copies)
            if seen and lineage.copies[seen - 1 : seen] != before.copies[-1:]:
                seen = 0
            at = len(lineage.copies)
            while at > seen:
                copies = lineage.copies[at - 1]
                self._vector[copies.first : copies.last] = self._passes(pod_class, copies.alone)
                at = copies.begins
        else:
            self._of_copies.clear()
            self._vector = np.zeros(rows.capacity, np.bool_)
            self._vector[: rows.n] = _evaluate_nodes(pod_class, rows)
            self.cells = cells_of(self._vector)
        self.static = self._vector[: rows.n]

    def _passes(self, pod_class: PodClass, alone: Rows) -> bool:
        passes = self._of_copies.get(alone)
        if passes is None:
            _clear_if_full(self._of_copies, _MAX_TEMPLATES)
            passes = self._of_copies[alone] = passes_alone(pod_class, alone)
        return passes


class Known:
    """Results about one class, with the versions of the snapshot that each part is valid for.

    Attributes:
        judges: What depends on where other pods are; none for most classes.
        static: Per row, whether the node object passes.
        static_cells: The same as Python bools.
        gates: Columns with what must be left in them.
        impossible: Whether the class asks for something that no node has.
        fits: The last whole answer.
    """

    __slots__ = (
        "_passing",
        "columns",
        "fits",
        "gates",
        "impossible",
        "judges",
        "layout",
        "lineage",
        "static",
        "static_cells",
        "take_in_copies",
        "version",
    )

    def __init__(self, passing: Passing) -> None:
        self._passing = passing
        self.lineage = Lineage(-1, ())
        self.layout = self.columns = self.version = -1
        self.impossible = False
        self.take_in_copies = False
        self.static: BoolVector = passing.static
        self.static_cells: memoryview = passing.cells
        self.gates: list[tuple[ColumnKey, Column, int]] = []
        self.judges: list[Judge] = []
        self.fits: BoolVector = self.static

    def update_nodes(self, pod_class: PodClass, rows: Rows, lineage: Lineage) -> None:
        """Update which node objects pass."""
        passing = self._passing
        passing.update(pod_class, rows, lineage)
        self.lineage, self.static, self.static_cells = lineage, passing.static, passing.cells

    def evaluate_alone(self, n: int) -> BoolVector:
        """Return whether each of the first n rows passes by its node object and free amounts; a new vector."""
        if self.impossible:
            return np.zeros(n, np.bool_)
        fits = self.static.copy()
        for _, column, minimum in self.gates:
            fits &= column.free[:n] >= minimum
        return fits

    def evaluate(self, n: int, version: int) -> BoolVector:
        """Return whether each of the first n rows passes everything; read-only, computed once per version."""
        if self.version == version:
            return self.fits
        fits = self.evaluate_alone(n)
        for judge in self.judges:
            fits &= judge.nodes()
        fits.flags.writeable = False
        self.fits = fits
        self.version = version
        return fits

    def first_fit(self, n: int, version: int, start: int, blocked: BoolVector) -> int:
        """Return the first of n rows that passes and is not blocked, going round once from ``start``, or -1."""
        if self.impossible:
            return -1
        static, closed = self.static_cells, memoryview(blocked)  # type: ignore[arg-type]  # numpy arrays have a buffer
        # A few single looks first: most pods find their place at once, and a look is cheaper than a vector.
        for row in range(start, min(start + FIRST_FIT_ROWS_ONE_BY_ONE, n)):
            if static[row] and not closed[row] and self.has_capacity(row):
                return row
        devices = next((one for one in self.judges if isinstance(one, DeviceJudge)), None)
        if devices is not None:
            return self._first_with_devices(devices, n, start, blocked)
        open_rows = self.evaluate(n, version) & ~blocked
        for first, last in ((start, n), (0, start)):
            if first < last:
                row = first + int(open_rows[first:last].argmax())
                if open_rows[row]:
                    return row
        return -1

    def _first_with_devices(self, devices: DeviceJudge, n: int, start: int, blocked: BoolVector) -> int:
        """Return what ``first_fit`` does; devices, for which a node costs most, are looked for on as few as possible."""
        open_rows = self.evaluate_alone(n) & ~blocked
        for judge in self.judges:
            if judge is not devices:
                open_rows &= judge.nodes()
        rows = np.flatnonzero(open_rows)
        at = int(np.searchsorted(rows, start))
        return devices.first(np.concatenate([rows[at:], rows[:at]]).tolist())

    def device_failure(self, n: int) -> str:
        """Return the error of the device search on the first of n rows that passes all else; empty for none."""
        for judge in self.judges:
            if not isinstance(judge, DeviceJudge):
                continue
            others = [one for one in self.judges if one is not judge]
            for row in np.flatnonzero(self.evaluate_alone(n)).tolist():
                if all(one.node(row) for one in others) and (failure := judge.failure(row)):
                    return failure
        return ""

    def has_capacity(self, row: int) -> bool:
        """Return whether one row has enough free and passes all judges; ignores its node object."""
        if self.impossible:
            return False
        for _, column, minimum in self.gates:  # the hot loop: a generator costs twice as much
            if column.cells[row] < minimum:
                return False
        return not self.judges or all(judge.node(row) for judge in self.judges)

    @property
    def only_tightens(self) -> bool:
        """Whether added pods can only make the verdict stricter."""
        return all(judge.only_tightens for judge in self.judges)


def _size_of_key(key: bytes) -> int:
    """Return what a key takes in a table, roughly; a vector of the rows comes on top."""
    return 512 + len(key)


def _size_of_class(pod_class: PodClass) -> int:
    return 1024 + len(pod_class.key)


class Shared:
    """Results shared by classes that differ in amounts only: which node objects pass, and judges."""

    def __init__(self) -> None:
        self._passing: Recent[bytes, Passing] = Recent(_MOST_BYTES, _size_of_key)
        self._judges: Recent[bytes, tuple[int, int, bool, list[Judge]]] = Recent(_MOST_BYTES, _size_of_key)

    def expect(self, rows: int) -> None:
        """Note how many rows there may be: vectors of a class get that length."""
        self._passing.each = self._judges.each = rows

    def passing(self, pod_class: PodClass) -> Passing:
        """Return which node objects pass."""
        key = pod_class.node_key if filters_in_use().shares_verdicts else None
        if key is None:
            return Passing()
        found = self._passing.get(key)
        if found is None:
            found = Passing()
            self._passing.put(key, found)
        return found

    def judges(
        self, pod_class: PodClass, rows: Rows, lineage: Lineage, layout: int
    ) -> tuple[list[Judge], bool]:
        """Return the judges of a class, and whether they stay valid while copies of templates are added and removed."""
        key = pod_class.inter_pod_key if filters_in_use().shares_verdicts else None
        if key is None:
            return _make_judges(pod_class, rows)
        found = self._judges.get(key)
        if found is None or found[0] != layout or not (found[2] or found[1] == lineage.version):
            judges, take_in_copies = _make_judges(pod_class, rows)
            found = layout, lineage.version, take_in_copies, judges
            self._judges.put(key, found)
        return found[3], found[2]


class Verdicts:
    """Cached results by class; may be dropped at any time."""

    def __init__(self, store: SnapshotStore, log: ChangeLog) -> None:
        self._store = store
        self._log = log
        self.clear()

    def clear(self) -> None:
        """Drop everything."""
        self._known: Recent[PodClass, Known] = Recent(_MOST_BYTES, _size_of_class)
        self._shared = Shared()

    def static(self, pod_class: PodClass, rows: Rows) -> BoolVector:
        """Return whether each node object passes, as ``Known.static``; computes nothing else."""
        passing = self._shared.passing(pod_class)
        passing.update(pod_class, rows, self._lineage_of(pod_class))
        return passing.static

    def know(self, pod_class: PodClass, rows: Rows) -> Known:
        """Return the results about a class, updated to the store's nodes, counts and columns."""
        store = self._store
        lineage, layout, columns = self._log.lineage, store.layout, store.columns_version
        if pod_class.claims or pod_class.devices is not None:
            lineage, layout = self._lineage_of(pod_class), max(layout, self._facts_version(pod_class))
        known = self._known.newest.get(pod_class)
        if known is None:
            known = self._known.get(pod_class)
        if known is None:
            self._known.each = rows.capacity
            self._shared.expect(rows.capacity)
            known = Known(self._shared.passing(pod_class))
            self._known.put(pod_class, known)
        holds = known.layout == layout
        if known.lineage is not lineage:
            holds = holds and (known.take_in_copies or known.lineage.version == lineage.version)
            known.update_nodes(pod_class, rows, lineage)
        if known.layout != layout or known.columns != columns:
            needs = [need for plugin in filters_in_use().capacity for need in plugin.needs(pod_class, rows)]
            known.impossible = any(need.key not in rows.columns for need in needs)
            known.gates = [(key, rows.columns[key], least) for key, least in needs if key in rows.columns]
            known.columns = columns
        if not holds:
            known.judges, known.take_in_copies = self._shared.judges(pod_class, rows, lineage, layout)
            known.layout = layout
        return known

    def _lineage_of(self, pod_class: PodClass) -> Lineage:
        """Return the lineage that a class is evaluated by: of nodes, or of the volumes or devices that it asks for."""
        changed, lineage = self._facts_version(pod_class), self._log.lineage
        return Lineage(changed, ()) if changed > lineage.version else lineage

    def _facts_version(self, pod_class: PodClass) -> int:
        return max(
            self._store.volume_version if pod_class.claims else 0,
            self._store.device_version if pod_class.devices is not None else 0,
        )


def _clear_if_full(memo: dict[Any, Any], most: int) -> None:
    if len(memo) >= most:
        memo.clear()


def _make_judges(pod_class: PodClass, rows: Rows) -> tuple[list[Judge], bool]:
    judges = [plugin.judge(pod_class, rows) for plugin in filters_in_use().moving]
    found = [judge for judge in judges if judge is not None]
    return found, all(getattr(judge, "takes_in_copies", False) for judge in found)


def passes_alone(pod_class: PodClass, alone: Rows) -> bool:
    """Return whether the one node object of the rows passes."""
    return bool(_evaluate_nodes(pod_class, alone)[0])


def _evaluate_nodes(pod_class: PodClass, rows: Rows) -> BoolVector:
    if refused_everywhere(pod_class, rows) is not None:
        return np.zeros(rows.n, np.bool_)
    static = np.ones(rows.n, np.bool_)
    for plugin in filters_in_use().static:
        passes = plugin.passes(pod_class, rows)
        if passes is not None:
            static &= passes
    return static
