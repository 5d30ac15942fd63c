"""The reference estimator, pod by pod: the fast estimators must return the same, and it is written to be read.

A real fork, a real search and a real limit for every single pod. For each group, in order of size:

1. Its pods go to nodes added so far: for each pod the first that fits, after the node that was used last. Existing
   nodes take no part, but the scan position counts them.
2. Each pod that is left goes to the node added last. Where only spreading by hostname keeps it off that node, any
   other node may take it, also an existing one.
3. Otherwise a node is added for it, unless the limit is reached, or the node added last is still empty. A pod that
   does not fit even there ends its group.

Slow: no use but in tests and to learn the rule. Fast paths (``--fastpath-binpacking-enabled``) are no part of it.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.estimator.order import Orders
from kubetide.scheduling.estimator.packing import Limits
from kubetide.scheduling.pods.classes import classify
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.units.vectors import BoolVector

_SKEWED = "node(s) didn't match pod topology spread constraints"


class ReferenceEstimate(NamedTuple):
    """The result of ``reference_estimate``; compare with ``Estimate``.

    Attributes:
        nodes: Nodes that took at least one pod, existing ones included.
        counts: Per group: node name to how many of its pods went there.
        added: Names of the nodes added, with those that stayed empty.
        limited: Whether the limits refused a node.
        start: Row at which the next scan begins.
    """

    nodes: int
    counts: list[dict[str, int]]
    added: list[str]
    limited: bool
    start: int


def reference_estimate(
    snapshot: Snapshot,
    template: Node,
    daemon_pods: Sequence[Pod],
    groups: Sequence[PodGroup],
    limits: Limits,
    start: int,
) -> ReferenceEstimate:
    """Return how many nodes of a template the groups need, found pod by pod; see ``packing.estimate`` for the arguments."""
    snapshot.fork()
    try:
        packing = _Packing(snapshot, template, daemon_pods, limits, start, len(groups))
        for index in Orders(groups, snapshot.facts.minor).of(template, range(len(groups))):
            packing.pack(index, list(groups[index].pods))
    finally:
        snapshot.revert()
    return ReferenceEstimate(
        len(packing.used), packing.counts, packing.added, not packing.may_add, packing.start
    )


class _Packing:
    """One estimate, on a fork."""

    def __init__(
        self,
        snapshot: Snapshot,
        template: Node,
        daemon_pods: Sequence[Pod],
        limits: Limits,
        start: int,
        groups: int,
    ) -> None:
        self._snapshot = snapshot
        self._existing = len(snapshot)
        self._template = template
        self._daemon_pods = daemon_pods
        self._max_nodes = limits.max_nodes
        self.start = start
        self.may_add = True
        self.added: list[str] = []
        self.used: set[str] = set()
        self.counts: list[dict[str, int]] = [{} for _ in range(groups)]

    def pack(self, index: int, pending: list[Pod]) -> None:
        """Place the pods of one group, in order, until one finds no place."""
        while pending and self._place_on_added(index, pending[0]):
            pending.pop(0)
        while pending and self.may_add and self._place_on_last_or_new(index, pending[0]):
            pending.pop(0)

    def _place_on_added(self, index: int, pod: Pod) -> bool:
        blocked = np.array(self._snapshot.unschedulable)
        blocked[: self._existing] = True
        return bool(self.added) and self._place_on_first(index, pod, blocked)

    def _place_on_last_or_new(self, index: int, pod: Pod) -> bool:
        snapshot, pod_class = self._snapshot, classify(pod)
        if self.added:
            last = self.added[-1]
            refusal = snapshot.first_refusal(pod_class, last)
            if refusal is None:
                self._put(index, pod, last)
                return True
            if _SKEWED in refusal.reasons and _spreads_by_hostname(pod):
                blocked = np.array(snapshot.unschedulable)
                blocked[snapshot.row(last)] = True
                if self._place_on_first(index, pod, blocked):
                    return True
            if last not in self.used:
                return False
        if self._max_nodes is not None and len(self.added) >= self._max_nodes:
            self.may_add = False
            return False
        name = f"{self._template.metadata.name}-e-{len(self.added)}"
        self.added.append(name)
        snapshot.add_template(self._template, self._daemon_pods, name)
        if snapshot.first_refusal(pod_class, name) is not None:
            return False
        self._put(index, pod, name)
        return True

    def _place_on_first(self, index: int, pod: Pod, blocked: BoolVector) -> bool:
        """Place a pod on the first node from ``start`` on that is not blocked; return whether there is one."""
        row = self._snapshot.first_fit(classify(pod), self.start, blocked)
        if row < 0:
            return False
        self._put(index, pod, self._snapshot.node_names[row])
        self.start = row + 1
        return True

    def _put(self, index: int, pod: Pod, name: str) -> None:
        # Groups may hold pods of the same name.
        named = replace(pod, metadata=replace(pod.metadata, name=f"{index}/{pod.metadata.name}"))
        self._snapshot.add_pod(named, name)
        counts = self.counts[index]
        counts[name] = counts.get(name, 0) + 1
        self.used.add(name)


def _spreads_by_hostname(pod: Pod) -> bool:
    return any(one.topology_key == HOSTNAME for one in pod.spec.topology_spread_constraints or ())
