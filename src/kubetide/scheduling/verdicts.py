"""What a snapshot has found out about pod classes, and how long it holds.

Judging node objects (labels, taints) is done once per class and kept until a node changes; what is
left on nodes is compared each time: one vector comparison per resource that the class asks for. Only
classes that other pods bear on have judges beside that.
"""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns import Column
from kubetide.scheduling.explain import refused_everywhere
from kubetide.scheduling.filters.base import Judge
from kubetide.scheduling.filters.registry import CAPACITY_FILTERS, MOVING_FILTERS, STATIC_FILTERS
from kubetide.scheduling.pod_class import ColumnKey, PodClass
from kubetide.scheduling.rows import BoolVector, Rows

_MAX_CLASSES = 1 << 13


class Known:
    """What is known about one class, with the versions of the snapshot that each part is of.

    Attributes:
        judges: What depends on where other pods are; none for most classes.
        static: Per row, whether the node object passes.
        gates: Columns with what must be left in them.
        impossible: Whether the class asks for something that no node has heard of.
        fits: The last whole answer.
    """

    __slots__ = (
        "fits",
        "gates",
        "impossible",
        "judges",
        "layout",
        "static",
        "static_cells",
        "static_version",
        "version",
    )

    def __init__(self) -> None:
        self.static_version = self.layout = self.version = -1
        self.impossible = False
        self.static: BoolVector = np.zeros(0, np.bool_)
        self.static_cells: memoryview = memoryview(b"")
        self.gates: list[tuple[ColumnKey, Column, int]] = []
        self.judges: list[Judge] = []
        self.fits: BoolVector = self.static

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


class Verdicts:
    """What is known, by class; a memo that may be dropped at any time."""

    def __init__(self) -> None:
        self._known: dict[PodClass, Known] = {}

    def know(self, pod_class: PodClass, rows: Rows, static_version: int, layout: int) -> Known:
        """Gives what is known about a class, brought up to the given versions."""
        known = self._known.get(pod_class)
        if known is None:
            if len(self._known) >= _MAX_CLASSES:
                self._known.clear()
            known = self._known[pod_class] = Known()
        if known.static_version != static_version:
            known.static = _judge_nodes(pod_class, rows)
            known.static_cells = memoryview(known.static)  # type: ignore[arg-type]  # numpy arrays have a buffer
            known.static_version = static_version
        if known.layout != layout:
            needs = [need for plugin in CAPACITY_FILTERS for need in plugin.needs(pod_class, rows)]
            known.impossible = any(need.key not in rows.columns for need in needs)
            known.gates = [(key, rows.columns[key], least) for key, least in needs if key in rows.columns]
            judges = [plugin.judge(pod_class, rows) for plugin in MOVING_FILTERS]
            known.judges = [judge for judge in judges if judge is not None]
            known.layout = layout
        return known


def _judge_nodes(pod_class: PodClass, rows: Rows) -> BoolVector:
    if refused_everywhere(pod_class, rows) is not None:
        return np.zeros(rows.n, np.bool_)
    static = np.ones(rows.n, np.bool_)
    for plugin in STATIC_FILTERS:
        passes = plugin.passes(pod_class, rows)
        if passes is not None:
            static &= passes
    return static
