"""Estimates for pods without inter-pod rules: copies of one pod are counted in one go, on columns of new nodes.

Existing nodes take no part, but the scan position counts them.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.estimator.new_nodes import NewNodes
from kubetide.scheduling.estimator.round_robin import go_round
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.units.vectors import Int64Vector


class AlonePacking:
    """One estimate: the added nodes, the scan position, and whether more may be added."""

    def __init__(
        self,
        snapshot: Snapshot,
        template: Node,
        daemon_pods: Sequence[Pod],
        max_nodes: int | None,
        start: int,
    ) -> None:
        self.nodes = NewNodes(template, daemon_pods, snapshot.facts)
        self.start = start
        self.may_add = True
        self._existing = len(snapshot)
        self._cordoned = template.spec.unschedulable
        self._max_nodes = max_nodes

    def pack(self, group: PodGroup) -> Int64Vector:
        """Pack one group and return its pods on each node added so far."""
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
            np.minimum(self.nodes.capacity(group.pod_class), pods),
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
            last[-1] = min(left, int(nodes.capacity(pod_class)[-1]))
            nodes.take(pod_class, last)
            taken = taken + last
            left -= int(last[-1])
        each = 0
        while left and not nodes.last_is_empty:
            # One node shows how many pods each copy takes, unless the class distinguishes copies.
            needed = -(-left // each) if each and not pod_class.names_nodes else 1
            allowed = needed
            if self._max_nodes is not None:
                allowed = min(needed, self._max_nodes - len(nodes))
            if allowed < needed:
                self.may_add = False
            if allowed <= 0:
                break
            capacity = nodes.add(pod_class, allowed)
            each = int(capacity[0])
            fresh = np.minimum(capacity, np.maximum(0, left - (np.cumsum(capacity) - capacity)))
            taken = np.concatenate([taken, fresh])
            nodes.take(pod_class, np.concatenate([np.zeros(len(nodes) - allowed, np.int64), fresh]))
            left -= int(fresh.sum())
            if not self.may_add:
                break
        return taken
