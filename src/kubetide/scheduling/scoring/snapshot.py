"""A snapshot that also counts what scoring reads of the pods on nodes, and caches results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kubetide.objects.node import Node
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import Unasked
from kubetide.scheduling.pods.resources import SCORED
from kubetide.scheduling.scoring.image_states import ImageStates
from kubetide.scheduling.scoring.node_tree import NodeTree
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.units.recent import Recent
from kubetide.units.vectors import Int64Vector

_MOST_BYTES = 64 << 20
Int64Matrix = npt.NDArray[np.int64]


class Stock(NamedTuple):
    """Amounts of some nodes: a row per resource of ``SCORED``, a column per node.

    Attributes:
        offered: What each node offers.
        requested: What its pods have requested.
        unasked: What scoring adds for containers that do not name the resource.
        divisor: What is offered, 1 where that is nothing.
        is_whole: Whether each node offers some of each resource.
    """

    offered: Int64Matrix
    requested: Int64Matrix
    unasked: Int64Matrix
    divisor: Int64Matrix
    is_whole: bool


class ScoredSnapshot(Snapshot):
    """A ``Snapshot`` for a scheduler. It must not be forked: its cached results are not reverted.

    Attributes:
        images: Which nodes have which images.
        tree: The order in which nodes are looked at.
    """

    def __init__(self, facts: ClusterFacts | None = None) -> None:
        super().__init__(facts, scored=True)
        self.images = ImageStates()
        self.tree = NodeTree()
        self._by_nodes: Recent[Hashable, tuple[int, Any]] = Recent(_MOST_BYTES, _size_of)
        self._stock: tuple[Int64Vector, int, Stock] | None = None
        self._by_counts: Recent[Hashable, tuple[tuple[int, int, int], Any]] = Recent(1 << 13)

    def set_node(self, node: Node) -> None:
        """Add or update a node; its pods stay."""
        super().set_node(node)
        self.tree.put(node)
        if node.status.images or self.images:
            self.images.put(node)

    def remove_node(self, name: str) -> None:
        """Remove a node, if it is known; its pods wait for it to return."""
        super().remove_node(name)
        self.tree.remove(name)
        self.images.remove(name)

    @property
    def rows(self) -> Rows:
        """All columns in their present state; read-only."""
        return self._store.compacted()

    def stock_of(self, rows: Int64Vector) -> Stock:
        """Return the allocatable and requested amounts of some rows, by resource of ``SCORED``."""
        known = self._stock
        if known is not None and known[0] is rows and known[1] == self._log.version:
            return known[2]
        columns = self._store.compacted().columns
        offered, requested, unasked = np.zeros((3, len(SCORED), len(rows)), np.int64)
        for line, resource in enumerate(SCORED):
            column, more = columns.get(resource), columns.get(Unasked(resource))
            if column is not None:
                # ``take`` is quicker than an index.
                offered[line] = column.allocatable.take(rows)
                requested[line] = offered[line] - column.free.take(rows)
            if more is not None:
                unasked[line] = -more.free.take(rows)
        is_whole = bool(offered.all())
        stock = Stock(offered, requested, unasked, offered if is_whole else np.maximum(offered, 1), is_whole)
        self._stock = rows, self._log.version, stock
        return stock

    def of_nodes(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the cached result for a key that depends on node objects; recomputed once nodes have changed."""
        self._store.compacted()
        version = self._log.lineage.version
        known = self._by_nodes.get(key)
        if known is None or known[0] != version:
            known = version, make()
            self._by_nodes.each = 8 * self._store.rows.capacity
            self._by_nodes.put(key, known)
        return known[1]

    def of_counts(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the cached counts and tables for a key; looked up again where new ones may exist."""
        rows = self._store.compacted()
        known = self._by_counts.get(key)
        version = self._store.layout, self._log.lineage.version, len(rows.asks)
        if known is None or known[0] != version:
            made = make()
            # Counts may have been made for it.
            known = (self._store.layout, self._log.lineage.version, len(rows.asks)), made
            self._by_counts.put(key, known)
        return known[1]

    def forget_classes(self) -> None:
        """Drop the cached results of classes; they are recomputed on use."""
        super().forget_classes()
        self._by_nodes = Recent(_MOST_BYTES, _size_of)
        self._by_counts = Recent(1 << 13)


def _size_of(_key: Hashable) -> int:
    return 1024
