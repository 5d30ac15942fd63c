"""How many new nodes of a template a set of pods needs: binpacking by arithmetic.

The answer is that of placing pods one at a time; copies of one pod are counted in one go. For each
group, in order of size: (1) its pods go round the nodes added so far, starting after the last one
that was used; (2) what is left fills the node added last, then one new node after another while the
limits allow. Existing nodes take no part, but the scan position counts them.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.classes import charges_on_node, classify_unbound
from kubetide.scheduling.fast_path import fast_path_group
from kubetide.scheduling.grouping import PodGroup
from kubetide.scheduling.new_nodes import NewNodes
from kubetide.scheduling.packing_forked import ForkedPacking
from kubetide.scheduling.resources import node_allocatable
from kubetide.scheduling.rounds import go_round
from kubetide.scheduling.rows import Int64Vector
from kubetide.scheduling.snapshot import Snapshot
from kubetide.scheduling.unstable_sort import descending_order

NO_NODE = -1
"""A threshold under which nothing may be added."""


class Limits(msgspec.Struct, frozen=True):
    """How many nodes may be added: 0 sets no bound, a negative threshold forbids any node."""

    thresholds: tuple[int, ...] = ()

    @property
    def max_nodes(self) -> int | None:
        """The bound, or None when there is none."""
        if any(threshold < 0 for threshold in self.thresholds):
            return 0
        return min((threshold for threshold in self.thresholds if threshold > 0), default=None)


def similar_groups_threshold(sizes: Sequence[tuple[int, int]]) -> int:
    """The room in a node group and its similar ones, given as (maximum, target) sizes."""
    return sum(max(0, maximum - target) for maximum, target in sizes) or NO_NODE


def cluster_threshold(max_nodes_total: int, current_nodes: int) -> int:
    """The room under ``--max-nodes-total``, where 0 means no bound."""
    if max_nodes_total == 0:
        return 0
    return max_nodes_total - current_nodes if current_nodes < max_nodes_total else NO_NODE


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a scale-up with one template would give.

    Attributes:
        nodes: New nodes that take at least one pod, and ``borrowed`` ones.
        scheduled: Per group, in the order given: the pods that find a place.
        order: The groups' indexes in the order in which they were packed.
        added: Names of the nodes added, with those that stayed empty.
        borrowed: Existing nodes that took pods where spreading by hostname kept them off the last new
            one; upstream counts them as new.
        divided: Nodes of the fast path that were only reckoned, not named.
        counts: (groups, added and then borrowed nodes), int64: pods of each group on each node.
        limited: Whether the limits refused a node.
        start: Row at which the next scan is to begin.
    """

    nodes: int
    scheduled: tuple[tuple[Pod, ...], ...]
    order: tuple[int, ...]
    added: tuple[str, ...]
    borrowed: tuple[str, ...] = ()
    divided: int = 0
    counts: tuple[Int64Vector, ...]
    limited: bool
    start: int

    def pods_on(self, name: str) -> dict[int, int]:
        """Gives the pods on an added or borrowed node: numbers by group index."""
        position = (*self.added, *self.borrowed).index(name)
        return {group: int(row[position]) for group, row in enumerate(self.counts) if row[position]}


def estimate(
    snapshot: Snapshot,
    template: Node,
    daemon_pods: Sequence[Pod],
    groups: Sequence[PodGroup],
    limits: Limits,
    *,
    start: int = 1,
    fast_path: bool = False,
) -> Estimate:
    """Says how many nodes of a template the groups need. The snapshot is only read.

    Args:
        snapshot: The cluster as it is.
        template: The node of which copies would be added, named ``<template>-e-<i>``.
        daemon_pods: The DaemonSet pods that each copy comes with.
        groups: What is to be placed, as ``equivalence_groups`` gives it.
        limits: How many nodes may be added.
        start: Row at which the next scan would begin, see ``placement.place``.
        fast_path: Whether the group for which it saves most is reckoned by division
            (``--fastpath-binpacking-enabled``).
    """
    if fast_path or _minds_others(snapshot, daemon_pods, groups):
        return _estimate_forked(snapshot, template, daemon_pods, groups, limits, start, fast_path=fast_path)
    packing = _Packing(snapshot, template, daemon_pods, limits, start)
    order = score_order(template, groups)
    taken: dict[int, Int64Vector] = {index: packing.pack(groups[index]) for index in order}
    width = len(packing.nodes)
    counts: list[Int64Vector] = []
    for index in range(len(groups)):
        row = np.zeros(width, np.int64)
        row[: len(taken[index])] = taken[index]
        counts.append(row)
    used = np.zeros(width, np.int64)
    for row in counts:
        used += row
    return Estimate(
        nodes=int(np.count_nonzero(used)),
        scheduled=tuple(group.pods[: int(row.sum())] for group, row in zip(groups, counts, strict=True)),
        order=tuple(order),
        added=packing.nodes.names,
        counts=tuple(counts),
        limited=not packing.may_add,
        start=packing.start,
    )


def _minds_others(snapshot: Snapshot, daemon_pods: Sequence[Pod], groups: Sequence[PodGroup]) -> bool:
    return any(snapshot.minds_others(group.pod_class) for group in groups) or any(
        classify_unbound(pod).anti_affinity for pod in daemon_pods
    )


def _estimate_forked(
    snapshot: Snapshot,
    template: Node,
    daemon_pods: Sequence[Pod],
    groups: Sequence[PodGroup],
    limits: Limits,
    start: int,
    *,
    fast_path: bool,
) -> Estimate:
    order = score_order(template, groups)
    existing = len(snapshot)
    snapshot.fork()
    try:
        # Counts are made before anything is added, as nameless pods could not be found for them later.
        for group in groups:
            snapshot.prepare(group.pod_class)
        packing = ForkedPacking(snapshot, template, daemon_pods, limits.max_nodes, start)
        by_division = fast_path_group(template, groups, order) if fast_path else None
        placed = {index: packing.pack(groups[index]) for index in order if index != by_division}
        by_fakes = 0
        if by_division is not None:
            placed[by_division], by_fakes = packing.pack_by_division(groups[by_division])
        names = tuple(snapshot.node_names)
    finally:
        snapshot.revert()
    used = dict.fromkeys(row for rows in placed.values() for row in rows)
    borrowed = sorted(row for row in used if row < existing)
    columns = {row: at for at, row in enumerate((*range(existing, len(names)), *borrowed))}
    counts: list[Int64Vector] = []
    for index in range(len(groups)):
        numbers = np.zeros(len(columns), np.int64)
        for row, number in placed[index].items():
            numbers[columns[row]] = number
        counts.append(numbers)
    return Estimate(
        nodes=len(used) + packing.divided,
        scheduled=tuple(
            group.pods[: sum(placed[index].values()) + (by_fakes if index == by_division else 0)]
            for index, group in enumerate(groups)
        ),
        order=tuple(order),
        added=tuple(packing.added),
        divided=packing.divided,
        borrowed=tuple(names[row] for row in borrowed),
        counts=tuple(counts),
        limited=not packing.may_add,
        start=packing.start,
    )


def score_order(template: Node, groups: Sequence[PodGroup]) -> list[int]:
    """Orders groups by the share of the template that one pod asks for, largest first.

    Equal scores keep the given order in up to 12 groups; beyond that upstream's sort may move them.
    """
    allocatable = node_allocatable(template)
    scores: list[float] = []
    for group in groups:
        asked = dict(charges_on_node(group.pods[0]))
        score = 0.0
        for resource in ("cpu", "memory"):
            offered = allocatable.get(resource, 0)
            if offered > 0:
                score += asked.get(resource, 0) / offered
        scores.append(score)
    return descending_order(scores)


class _Packing:
    """One estimate: the nodes added, the position of the scan, and whether more may be added."""

    def __init__(
        self, snapshot: Snapshot, template: Node, daemon_pods: Sequence[Pod], limits: Limits, start: int
    ) -> None:
        self.nodes = NewNodes(template, daemon_pods, snapshot.facts)
        self.start = start
        self.may_add = True
        self._existing = len(snapshot)
        self._cordoned = template.spec.unschedulable
        self._max_nodes = limits.max_nodes

    def pack(self, group: PodGroup) -> Int64Vector:
        """Packs one group and gives its pods on each node added so far."""
        left = len(group.pods)
        taken = np.zeros(len(self.nodes), np.int64)
        # The scan passes over cordoned nodes even where pods tolerate them; naming the node does not.
        if len(self.nodes) and not self._cordoned:
            taken = self._scan(group, left)
            left -= int(taken.sum())
        if left and self.may_add:
            taken = self._add_nodes(group, left, taken)
        return taken

    def _scan(self, group: PodGroup, pods: int) -> Int64Vector:
        rows = self._existing + len(self.nodes)
        fill = go_round(
            np.minimum(self.nodes.room(group.pod_class), pods),
            pods,
            max(0, self.start % rows - self._existing),
        )
        if fill.last >= 0:
            self.start = self._existing + fill.last + 1
            self.nodes.take(group.pod_class, fill.taken)
        return fill.taken

    def _add_nodes(self, group: PodGroup, left: int, taken: Int64Vector) -> Int64Vector:
        pod_class = group.pod_class
        nodes = self.nodes
        if len(nodes):
            last = np.zeros(len(nodes), np.int64)
            last[-1] = min(left, int(nodes.room(pod_class)[-1]))
            nodes.take(pod_class, last)
            taken = taken + last
            left -= int(last[-1])
        each = 0
        while left and not nodes.last_is_empty:
            # One node tells how many pods each copy takes, unless the class tells copies apart.
            wanted = -(-left // each) if each and not pod_class.names_nodes else 1
            allowed = wanted
            if self._max_nodes is not None:
                allowed = min(wanted, self._max_nodes - len(nodes))
            if allowed < wanted:
                self.may_add = False
            if allowed <= 0:
                break
            room = nodes.add(pod_class, allowed)
            each = int(room[0])
            fresh = np.minimum(room, np.maximum(0, left - (np.cumsum(room) - room)))
            taken = np.concatenate([taken, fresh])
            nodes.take(pod_class, np.concatenate([np.zeros(len(nodes) - allowed, np.int64), fresh]))
            left -= int(fresh.sum())
            if not self.may_add:
                break
        return taken
