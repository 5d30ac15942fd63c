"""How many new nodes of a template a set of pods needs: binpacking by arithmetic.

The answer is that of placing pods one at a time; copies of one pod are counted in one go. For each
group, in order of size: (1) its pods go round the nodes added so far, starting after the last one
that was used; (2) what is left fills the node added last, then one new node after another while the
limits allow. Existing nodes take no part, but the scan position counts them.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.estimator.demands import Demands
from kubetide.scheduling.estimator.fast_path import fast_path_group
from kubetide.scheduling.estimator.forked import ForkedPacking
from kubetide.scheduling.estimator.independent import AlonePacking
from kubetide.scheduling.estimator.order import Orders
from kubetide.scheduling.estimator.single import NeedsExistingNode, SinglePacking
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.scheduling.thresholds import PODS_A_CLASS_ONE_BY_ONE
from kubetide.units.vectors import Int64Vector

PODS_IN_A_PART = 5_000
"""After so many pods an estimate that is made in parts comes back, between groups of like pods."""
NODES_IN_A_PART = 64
"""Within one group it does so after as many new nodes, where each is looked at by itself."""

EstimateInParts = Generator[None, bool, "Estimate"]
"""An estimate in parts: ``send`` True after one of them, and no node more is added."""

NO_NODE = -1
"""A threshold under which nothing may be added."""


class Limits(msgspec.Struct, frozen=True):
    """How many nodes may be added: 0 means no limit, a negative threshold forbids any node."""

    thresholds: tuple[int, ...] = ()

    @property
    def max_nodes(self) -> int | None:
        """The limit, or None if there is none."""
        if any(threshold < 0 for threshold in self.thresholds):
            return 0
        return min((threshold for threshold in self.thresholds if threshold > 0), default=None)


def similar_groups_threshold(sizes: Sequence[tuple[int, int]]) -> int:
    """Return how many nodes a node group and its similar ones may still add, given their (maximum, target) sizes."""
    return sum(max(0, maximum - target) for maximum, target in sizes) or NO_NODE


def cluster_threshold(max_nodes_total: int, current_nodes: int) -> int:
    """Return how many nodes ``--max-nodes-total`` still allows, where 0 means no bound."""
    if max_nodes_total == 0:
        return 0
    return max_nodes_total - current_nodes if current_nodes < max_nodes_total else NO_NODE


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The result of a scale-up with one template.

    Attributes:
        nodes: New nodes that take at least one pod, and ``borrowed`` ones.
        scheduled: Per group, in the order given: the pods that find a place.
        order: The groups' indexes in the order in which they were packed.
        added: Names of the nodes added, with those that stayed empty.
        borrowed: Existing nodes that took pods where spreading by hostname rejected them on the last new
            one; upstream counts them as new.
        divided: Nodes of the fast path that were only counted, not named.
        placed: Per group: how many of its pods are on which of the added and then borrowed nodes.
        limited: Whether the limits refused a node.
        start: Row at which the next scan is to begin.
    """

    nodes: int
    scheduled: tuple[tuple[Pod, ...], ...]
    order: tuple[int, ...]
    added: tuple[str, ...]
    borrowed: tuple[str, ...] = ()
    divided: int = 0
    placed: Sequence[Mapping[int, int]]
    limited: bool
    start: int

    @cached_property
    def counts(self) -> tuple[Int64Vector, ...]:
        """(groups, added and then borrowed nodes), int64: pods of each group on each node."""
        every = np.zeros((len(self.placed), len(self.added) + len(self.borrowed)), np.int64)
        for row, numbers in zip(every, self.placed, strict=True):
            row[list(numbers)] = list(numbers.values())
        return tuple(every)

    def pods_on(self, name: str) -> dict[int, int]:
        """Return the pods on an added or borrowed node: numbers by group index."""
        position = (*self.added, *self.borrowed).index(name)
        return {group: numbers[position] for group, numbers in enumerate(self.placed) if position in numbers}


class Estimator:
    """Estimates for the same groups, with one template after another."""

    def __init__(self, snapshot: Snapshot, groups: Sequence[PodGroup]) -> None:
        """Args: the cluster, which is only read, and the groups of ``equivalence_groups``."""
        self._snapshot = snapshot
        self._groups = groups
        self._orders = Orders(groups, snapshot.facts.minor)
        self._demands: Demands | None = None

    def estimate(
        self,
        template: Node,
        daemon_pods: Sequence[Pod],
        groups: Sequence[int],
        limits: Limits,
        *,
        start: int = 1,
        fast_path: bool = False,
    ) -> EstimateInParts:
        """Estimate in parts how many nodes of a template some of the groups need.

        While it goes on the snapshot may be forked, and must not be changed by others.

        Args:
            template: The node of which copies would be added, named ``<template>-e-<i>``.
            daemon_pods: The DaemonSet pods that each copy comes with.
            groups: Numbers of the groups; ``Estimate`` counts them anew, in this order.
            limits: How many nodes may be added.
            start: Row at which the next scan would begin, see ``placement.place``.
            fast_path: Whether the group for which it saves most is estimated by division
                (``--fastpath-binpacking-enabled``).
        """
        given = [self._groups[at] for at in groups]
        order = self._orders.of(template, groups)
        if not fast_path and sum(len(group.pods) for group in given) <= PODS_A_CLASS_ONE_BY_ONE * len(given):
            found = yield from self._singly(template, daemon_pods, groups, order, limits, start)
            if found is not None:
                return found
        number = {at: position for position, at in enumerate(groups)}
        order = [number[at] for at in order]
        if fast_path or _has_inter_pod_rules(self._snapshot, daemon_pods, given):
            return (
                yield from _estimate_forked(
                    self._snapshot, template, daemon_pods, given, order, limits, start, fast_path=fast_path
                )
            )
        return (
            yield from _estimate_alone(self._snapshot, template, daemon_pods, given, order, limits, start)
        )

    def _singly(
        self,
        template: Node,
        daemon_pods: Sequence[Pod],
        groups: Sequence[int],
        order: Sequence[int],
        limits: Limits,
        start: int,
    ) -> Generator[None, bool, Estimate | None]:
        demands = self._demands
        if demands is None or not demands.holds:
            demands = self._demands = Demands(self._snapshot, self._groups)
        demand = demands.of(template, daemon_pods, groups)
        if demand is None:
            return None
        packing = SinglePacking(
            demand.stock,
            demand.counts,
            demand.own,
            existing=len(self._snapshot),
            cordoned=template.spec.unschedulable,
            max_nodes=limits.max_nodes,
            start=start,
        )
        kinds, given = demand.kinds, self._groups
        placed: dict[int, dict[int, int]] = {}
        parts = _Parts()
        try:
            for at in order:
                if parts.end_before(len(given[at].pods)) and (yield):
                    packing.may_add = False
                placed[at] = packing.pack(kinds[at], len(given[at].pods))
        except NeedsExistingNode:
            return None
        number = {at: position for position, at in enumerate(groups)}
        return Estimate(
            nodes=sum(packing.used),
            scheduled=tuple(given[at].pods[: sum(placed[at].values())] for at in groups),
            order=tuple(number[at] for at in order),
            added=tuple(f"{template.metadata.name}-e-{at}" for at in range(len(packing.used))),
            placed=[placed[at] for at in groups],
            limited=not packing.may_add,
            start=packing.start,
        )


class _Parts:
    """Counts the pods of a part."""

    def __init__(self) -> None:
        self._pods = 0

    def end_before(self, pods: int) -> bool:
        """Return whether the part is over, so that these begin another."""
        ends = self._pods >= PODS_IN_A_PART
        self._pods = pods if ends else self._pods + pods
        return ends


def run_to_end(parts: EstimateInParts) -> Estimate:
    """Return the result of an estimate that is made without a pause."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            found: Estimate = end.value
            return found


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
    """Return how many nodes of a template the groups need; for several templates see ``Estimator``."""
    estimator = Estimator(snapshot, groups)
    every = range(len(groups))
    return run_to_end(
        estimator.estimate(template, daemon_pods, every, limits, start=start, fast_path=fast_path)
    )


def _has_inter_pod_rules(snapshot: Snapshot, daemon_pods: Sequence[Pod], groups: Sequence[PodGroup]) -> bool:
    return any(snapshot.has_inter_pod_rules(group.pod_class) for group in groups) or any(
        classify_unbound(pod).anti_affinity for pod in daemon_pods
    )


def _estimate_alone(
    snapshot: Snapshot,
    template: Node,
    daemon_pods: Sequence[Pod],
    groups: Sequence[PodGroup],
    order: Sequence[int],
    limits: Limits,
    start: int,
) -> EstimateInParts:
    packing = AlonePacking(snapshot, template, daemon_pods, limits.max_nodes, start)
    taken: dict[int, Int64Vector] = {}
    parts = _Parts()
    for index in order:
        if parts.end_before(len(groups[index].pods)) and (yield):
            packing.may_add = False
        taken[index] = packing.pack(groups[index])
    used = np.zeros(len(packing.nodes), np.int64)
    placed: list[dict[int, int]] = []
    for index in range(len(groups)):
        row = taken[index]
        used[: len(row)] += row
        positions = np.flatnonzero(row)
        placed.append(dict(zip(positions.tolist(), row[positions].tolist(), strict=True)))
    return Estimate(
        nodes=int(np.count_nonzero(used)),
        scheduled=tuple(
            group.pods[: sum(numbers.values())] for group, numbers in zip(groups, placed, strict=True)
        ),
        order=tuple(order),
        added=packing.nodes.names,
        placed=placed,
        limited=not packing.may_add,
        start=packing.start,
    )


def _estimate_forked(
    snapshot: Snapshot,
    template: Node,
    daemon_pods: Sequence[Pod],
    groups: Sequence[PodGroup],
    order: Sequence[int],
    limits: Limits,
    start: int,
    *,
    fast_path: bool,
) -> EstimateInParts:
    existing = len(snapshot)
    snapshot.fork()
    try:
        # Counts are made before anything is added, as nameless pods could not be found for them later.
        for group in groups:
            snapshot.prepare(group.pod_class)
        packing = ForkedPacking(snapshot, template, daemon_pods, limits.max_nodes, start)
        by_division = fast_path_group(template, groups, order) if fast_path else None
        placed: dict[int, dict[int, int]] = {}
        parts = _Parts()
        for index in order:
            if index == by_division:
                continue
            if parts.end_before(len(groups[index].pods)) and (yield):
                packing.may_add = False
            packing.pausing = NODES_IN_A_PART
            placed[index] = packing.pack(groups[index])
            while packing.is_paused:
                packing.may_add = packing.may_add and not (yield)
                packing.pausing = NODES_IN_A_PART
                placed[index] = packing.go_on()
        by_fakes = 0
        if by_division is not None:
            placed[by_division], by_fakes = packing.pack_by_division(groups[by_division])
        names = tuple(snapshot.node_names)
    finally:
        snapshot.revert()
    used = dict.fromkeys(row for rows in placed.values() for row in rows)
    borrowed = sorted(row for row in used if row < existing)
    position = {row: at for at, row in enumerate((*range(existing, len(names)), *borrowed))}
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
        placed=[
            {position[row]: number for row, number in placed[index].items()} for index in range(len(groups))
        ],
        limited=not packing.may_add,
        start=packing.start,
    )
