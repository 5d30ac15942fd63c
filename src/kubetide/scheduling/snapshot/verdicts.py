"""What a snapshot has found out about pod classes, and how long it holds.

Judging node objects (labels, taints) is done once per class and kept until a node changes; what is
left on nodes is compared each time: one vector comparison per resource that the class asks for. Only
classes that other pods bear on have judges beside that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kubetide.scheduling.columns.columns import Column, cells_of
from kubetide.scheduling.columns.rows import BoolVector, Rows
from kubetide.scheduling.explain import refused_everywhere
from kubetide.scheduling.filters.base import Judge
from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.pods.pod_class import ColumnKey, PodClass
from kubetide.units.recent import Recent

_MOST_BYTES = 64 << 20
"""Of what is known about classes, roughly, in each of two halves."""
_MAX_TEMPLATES = 64


class Copies(NamedTuple):
    """Rows from first to last that copies of one template were given, in one go or in several in a row.

    Attributes:
        version: Of the snapshot when the last of them were added.
        begins: How many entries of the lineage are before the first of these copies.
        alone: One of them by itself.
    """

    version: int
    begins: int
    first: int
    last: int
    alone: Rows


class Lineage(NamedTuple):
    """How the nodes came to be what they are: a version, and the copies that were added since."""

    epoch: int
    copies: tuple[Copies, ...]

    def with_copies(self, version: int, first: int, last: int, alone: Rows) -> Lineage:
        """The same with more copies."""
        begins, before = len(self.copies), self.copies[-1:]
        if before and before[0].alone is alone and before[0].last == first:
            begins, first = before[0].begins, before[0].first
        return Lineage(self.epoch, (*self.copies, Copies(version, begins, first, last, alone)))

    @property
    def version(self) -> int:
        """Another number for other nodes."""
        return self.copies[-1].version if self.copies else self.epoch


class Passing:
    """Which node objects pass: by row, kept up to date. One for all classes of a standing.

    Attributes:
        static: Per row, whether the node object passes.
        cells: The same as Python bools.
    """

    __slots__ = ("_lineage", "_of_copies", "_room", "cells", "static")

    def __init__(self) -> None:
        self._lineage = Lineage(-1, ())
        self._of_copies: dict[Rows, bool] = {}
        self._room: BoolVector = np.zeros(0, np.bool_)
        self.static = self._room
        self.cells: memoryview = memoryview(b"")

    def bring(self, pod_class: PodClass, rows: Rows, lineage: Lineage) -> None:
        """Brings it up to date, for any class of the standing."""
        before, self._lineage = self._lineage, lineage
        if before is lineage:
            return
        alike = not (pod_class.names_nodes or pod_class.claims or pod_class.devices is not None)
        if before.epoch == lineage.epoch and alike and rows.n <= len(self._room):
            seen = len(before.copies)
            if seen and lineage.copies[seen - 1 : seen] != before.copies[-1:]:
                seen = 0
            at = len(lineage.copies)
            while at > seen:
                copies = lineage.copies[at - 1]
                self._room[copies.first : copies.last] = self._passes(pod_class, copies.alone)
                at = copies.begins
        else:
            self._of_copies.clear()
            self._room = np.zeros(rows.capacity, np.bool_)
            self._room[: rows.n] = _judge_nodes(pod_class, rows)
            self.cells = cells_of(self._room)
        self.static = self._room[: rows.n]

    def _passes(self, pod_class: PodClass, alone: Rows) -> bool:
        passes = self._of_copies.get(alone)
        if passes is None:
            _make_room(self._of_copies, _MAX_TEMPLATES)
            passes = self._of_copies[alone] = passes_alone(pod_class, alone)
        return passes


class Known:
    """What is known about one class, with the versions of the snapshot that each part is of.

    Attributes:
        judges: What depends on where other pods are; none for most classes.
        static: Per row, whether the node object passes.
        static_cells: The same as Python bools.
        gates: Columns with what must be left in them.
        impossible: Whether the class asks for something that no node has heard of.
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

    def judge_nodes(self, pod_class: PodClass, rows: Rows, lineage: Lineage) -> None:
        """Brings up to date which node objects pass."""
        passing = self._passing
        passing.bring(pod_class, rows, lineage)
        self.lineage, self.static, self.static_cells = lineage, passing.static, passing.cells

    def judge_alone(self, n: int) -> BoolVector:
        """Whether each of the first n rows passes by its node object and what is left on it; a fresh vector."""
        if self.impossible:
            return np.zeros(n, np.bool_)
        fits = self.static.copy()
        for _, column, minimum in self.gates:
            fits &= column.free[:n] >= minimum
        return fits

    def judge(self, n: int) -> BoolVector:
        """Whether each of the first n rows passes everything; a fresh vector."""
        fits = self.judge_alone(n)
        for judge in self.judges:
            fits &= judge.nodes()
        return fits

    def has_room(self, row: int) -> bool:
        """Whether enough is left on one row."""
        if self.impossible:
            return False
        for _, column, minimum in self.gates:  # the hot loop: a generator costs twice as much
            if column.cells[row] < minimum:
                return False
        return not self.judges or all(judge.node(row) for judge in self.judges)

    @property
    def only_tightens(self) -> bool:
        """Whether pods that are added to nodes can only make the verdict stricter."""
        return all(judge.only_tightens for judge in self.judges)


class Shared:
    """What classes have in common that differ in amounts alone: what nodes say by themselves, and judges."""

    def __init__(self) -> None:
        self._rows = 0
        self._passing: Recent[bytes, Passing] = Recent(_MOST_BYTES, self._size_of)
        self._judges: Recent[bytes, tuple[int, int, bool, list[Judge]]] = Recent(_MOST_BYTES, self._size_of)

    def expect(self, rows: int) -> None:
        """Notes the room for rows: what is known of a class is as long."""
        self._rows = rows

    def _size_of(self, key: bytes) -> int:
        return 512 + len(key) + self._rows

    def passing(self, pod_class: PodClass) -> Passing:
        """Gives what says which node objects pass."""
        key = pod_class.standing if filters_in_use().shares_verdicts else None
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
        """Gives the judges of a class, and whether they hold while copies of templates come and go."""
        key = pod_class.minding if filters_in_use().shares_verdicts else None
        if key is None:
            return _make_judges(pod_class, rows)
        found = self._judges.get(key)
        if found is None or found[0] != layout or not (found[2] or found[1] == lineage.version):
            judges, take_in_copies = _make_judges(pod_class, rows)
            found = layout, lineage.version, take_in_copies, judges
            self._judges.put(key, found)
        return found[3], found[2]


class Verdicts:
    """What is known, by class; a memo that may be dropped at any time."""

    def __init__(self) -> None:
        self._rows = 0
        self.clear()

    def clear(self) -> None:
        """Drops all of it."""
        self._known: Recent[PodClass, Known] = Recent(_MOST_BYTES, self._size_of)
        self._shared = Shared()

    def _size_of(self, pod_class: PodClass) -> int:
        return 1024 + len(pod_class.key) + self._rows

    def static(self, pod_class: PodClass, rows: Rows, lineage: Lineage) -> BoolVector:
        """Whether each node object passes, as ``Known.static``; nothing else is found out."""
        passing = self._shared.passing(pod_class)
        passing.bring(pod_class, rows, lineage)
        return passing.static

    def know(self, pod_class: PodClass, rows: Rows, lineage: Lineage, layout: int, columns: int) -> Known:
        """Gives what is known about a class, brought up to the given nodes, layout of counts and columns."""
        known = self._known.newest.get(pod_class)
        if known is None:
            known = self._known.get(pod_class)
        if known is None:
            self._rows = rows.capacity
            self._shared.expect(rows.capacity)
            known = Known(self._shared.passing(pod_class))
            self._known.put(pod_class, known)
        holds = known.layout == layout
        if known.lineage is not lineage:
            holds = holds and (known.take_in_copies or known.lineage.version == lineage.version)
            known.judge_nodes(pod_class, rows, lineage)
        if known.layout != layout or known.columns != columns:
            needs = [need for plugin in filters_in_use().capacity for need in plugin.needs(pod_class, rows)]
            known.impossible = any(need.key not in rows.columns for need in needs)
            known.gates = [(key, rows.columns[key], least) for key, least in needs if key in rows.columns]
            known.columns = columns
        if not holds:
            known.judges, known.take_in_copies = self._shared.judges(pod_class, rows, lineage, layout)
            known.layout = layout
        return known


def _make_room(memo: dict[Any, Any], most: int) -> None:
    if len(memo) >= most:
        memo.clear()


def _make_judges(pod_class: PodClass, rows: Rows) -> tuple[list[Judge], bool]:
    judges = [plugin.judge(pod_class, rows) for plugin in filters_in_use().moving]
    found = [judge for judge in judges if judge is not None]
    return found, all(getattr(judge, "takes_in_copies", False) for judge in found)


def passes_alone(pod_class: PodClass, alone: Rows) -> bool:
    """Whether the one node object of the rows passes."""
    return bool(_judge_nodes(pod_class, alone)[0])


def _judge_nodes(pod_class: PodClass, rows: Rows) -> BoolVector:
    if refused_everywhere(pod_class, rows) is not None:
        return np.zeros(rows.n, np.bool_)
    static = np.ones(rows.n, np.bool_)
    for plugin in filters_in_use().static:
        passes = plugin.passes(pod_class, rows)
        if passes is not None:
            static &= passes
    return static
