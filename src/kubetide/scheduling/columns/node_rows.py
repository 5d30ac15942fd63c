"""Nodes as rows of columns: one int64 vector per resource, one code vector per label key.

The order of rows is the order in which nodes were added; all first-fit answers depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from kubetide.objects.node import Node, Taint
from kubetide.scheduling.columns.columns import Column, LabelColumn, cells_of
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import Charges, ColumnKey, Port
from kubetide.scheduling.pods.resources import node_allocatable
from kubetide.units.vectors import BoolVector, Int64Vector

CodeVector = npt.NDArray[np.int32]

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class NodeRows:
    """The columns of nodes: offered and free amounts, labels, taints."""

    def __init__(self, capacity: int) -> None:
        self.n = 0
        self.capacity = capacity
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.row_of: dict[str, int] = {}
        self.columns: dict[ColumnKey, Column] = {}
        self.ports: dict[tuple[str, int], list[Port]] = {}
        self._taint_sets: dict[tuple[Taint, ...], int] = {}
        self._taint_sets_by_key: dict[str, list[tuple[tuple[Taint, ...], int]]] = {}
        self._labels: dict[str, LabelColumn] = {}
        self._unschedulable: BoolVector = np.zeros(capacity, np.bool_)
        self._taint_codes: CodeVector = np.zeros(capacity, np.int32)

    @property
    def unschedulable(self) -> BoolVector:
        """Whether each node is cordoned by its spec."""
        return self._unschedulable[: self.n]

    @property
    def taint_codes(self) -> CodeVector:
        """Per node, the number of the set of its NoSchedule and NoExecute taints."""
        return self._taint_codes[: self.n]

    @property
    def taint_sets(self) -> int:
        """How many different sets of such taints nodes have, or have had."""
        return len(self._taint_sets)

    def tolerable_taint_sets(self, keys: Collection[str]) -> Iterable[tuple[tuple[Taint, ...], int]]:
        """Return the sets, with their numbers, that tolerations of these keys may tolerate; the empty key is any.

        The set without taints is among them. Others are found by their first taint.
        """
        if "" in keys:
            return self._taint_sets.items()
        return [one for key in ("", *keys) for one in self._taint_sets_by_key.get(key, ())]

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key; built on first use, then kept up to date."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self.capacity)
            for row, node in enumerate(self.nodes):
                column.put(row, labels_of(node).get(key))
        return column

    def free_of(self, key: ColumnKey, row: int) -> int:
        """Return the free amount of a resource on a node; 0 for a resource that no node has."""
        column = self.columns.get(key)
        return 0 if column is None else int(column.cells[row])

    def allocatable_of(self, key: ColumnKey, row: int) -> int:
        """Return the allocatable amount of a resource on a node."""
        column = self.columns.get(key)
        return 0 if column is None else int(column.allocatable[row])

    def add_column(self, key: ColumnKey) -> None:
        """Add a column with zero offered and taken amounts."""
        self.columns[key] = Column(np.zeros(self.capacity, np.int64), np.zeros(self.capacity, np.int64))
        if isinstance(key, Port):
            self.ports.setdefault((key.protocol, key.port), []).append(key)

    def drop_column(self, key: ColumnKey) -> None:
        """Undo ``add_column``."""
        del self.columns[key]
        if isinstance(key, Port):
            self.ports[key.protocol, key.port].remove(key)

    def append(self, node: Node) -> int:
        """Add a row for a node and return its number; the columns must exist (``missing``)."""
        if self.n == self.capacity:
            self._grow()
        row = self.n
        self.n += 1
        self.names.append(node.metadata.name)
        self.nodes.append(node)
        self.row_of[node.metadata.name] = row
        for column in self.columns.values():
            column.free[row] = 0
            column.allocatable[row] = 0
        self.write(row, node)
        return row

    def append_copies(self, nodes: Sequence[Node]) -> None:
        """Add rows for nodes that differ only in their names, which are also their hostnames."""
        while self.n + len(nodes) > self.capacity:
            self._grow()
        first, last = self.n, self.n + len(nodes)
        self.n = last
        self.names += [node.metadata.name for node in nodes]
        self.nodes += nodes
        self.row_of.update(zip(self.names[first:last], range(first, last), strict=True))
        node = nodes[0]
        self._unschedulable[first:last] = node.spec.unschedulable
        self._taint_codes[first:last] = self._taint_code(node)
        for key, label in self._labels.items():
            if key == HOSTNAME:
                label.put_many(first, self.names[first:])
            else:
                label.put(first, labels_of(node).get(key))
                label.codes[first:last] = label.codes[first]
        offered = node_allocatable(node)
        for resource, column in self.columns.items():
            amount = offered.get(resource, 0) if isinstance(resource, str) else 0
            column.allocatable[first:last] = amount
            column.free[first:last] = amount

    def pop(self, count: int = 1) -> None:
        """Undo the last ``append``, or the last ``append_copies`` of this number of rows."""
        self.n -= count
        del self.nodes[self.n :]
        for name in self.names[self.n :]:
            del self.row_of[name]
        del self.names[self.n :]

    def missing(self, node: Node) -> list[str]:
        """The resources of the node that have no column yet, in the node's order."""
        return [name for name in node_allocatable(node) if name not in self.columns]

    def write(self, row: int, node: Node) -> None:
        """Write a node object's values to its row; taken amounts stay."""
        self.nodes[row] = node
        self._unschedulable[row] = node.spec.unschedulable
        self._taint_codes[row] = self._taint_code(node)
        labels = labels_of(node)
        for key, label in self._labels.items():
            label.put(row, labels.get(key))
        offered = node_allocatable(node)
        for resource, column in self.columns.items():
            column.offer(row, offered.get(resource, 0) if isinstance(resource, str) else 0)

    def charge(self, row: int, charges: Charges, sign: int) -> None:
        """Subtract (+1) or add back (-1) the amounts of a pod; the columns must exist."""
        columns = self.columns
        for key, amount in charges:  # the hot loop of every placement: no call for the usual amounts
            column = columns[key]
            try:
                column.cells[row] -= sign * amount
            except ValueError:
                column.take(row, sign * amount)

    def add_column_of(self, key: ColumnKey, allocatable: Int64Vector, free: Int64Vector) -> None:
        """Add a column with the given values for the rows that exist."""
        column = Column(np.zeros(self.capacity, np.int64), np.zeros(self.capacity, np.int64))
        column.allocatable[: self.n] = allocatable
        column.free[: self.n] = free
        self.columns[key] = column

    def _taint_code(self, node: Node) -> int:
        blocking = tuple(taint for taint in node.spec.taints or () if taint.effect in _BLOCKING_EFFECTS)
        code = self._taint_sets.get(blocking)
        if code is None:
            code = self._taint_sets[blocking] = len(self._taint_sets)
            key = blocking[0].key if blocking else ""
            self._taint_sets_by_key.setdefault(key, []).append((blocking, code))
        return code

    def _grow(self) -> None:
        old, self.capacity = self.capacity, self.capacity * 2
        for column in self.columns.values():
            allocatable, free = np.zeros(self.capacity, np.int64), np.zeros(self.capacity, np.int64)
            allocatable[:old] = column.allocatable
            free[:old] = column.free
            column.allocatable, column.free, column.cells = allocatable, free, cells_of(free)
        for label in self._labels.values():
            label.codes = np.concatenate([label.codes, np.zeros(old, np.int32)])
        self._unschedulable = np.concatenate([self._unschedulable, np.zeros(old, np.bool_)])
        self._taint_codes = np.concatenate([self._taint_codes, np.zeros(old, np.int32)])


def labels_of(node: Node) -> Mapping[str, str]:
    """The node's labels."""
    return node.metadata.labels or _NO_LABELS
