"""Estimates for pods with inter-pod rules: on a fork of the snapshot, with real rows for new nodes.

The answer is that of placing pods one at a time. Copies of one pod are counted in one go where the
arithmetic is exact:

- Conditions that the group's own pods do not change are the same for every pod: a mask.
- Anti-affinity among copies, by hostname: one pod a node.
- Conditions by any other label: all new nodes share the template's value, so it is one quota.
- Spreading by hostname: while the least-filled domain stays as it is, every node has a fixed number
  of places; pods are dealt out up to the point where the minimum may rise.

Anything else (several spreads by hostname, nodes distinguished by name, plugins without terms) is
placed pod by pod, and pods with claims to devices under their own names.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.estimator.forked_group import ForkedGroup
from kubetide.scheduling.filters.pod_topology_spread import REASON as SPREAD_REASON
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.snapshot.snapshot import Snapshot

REPEATED_IN_A_PART = 50_000
"""So many nodes are added at once at the most, where ``pack`` comes back before its time: less than 0.1 s of work."""


class ForkedPacking:
    """One estimate on a fork; the caller forks before and reverts after.

    Attributes:
        added: Names of the nodes added.
        start: Row at which the next scan begins.
        may_add: Whether the limits still allow a node.
        divided: Nodes that ``pack_by_division`` counted beside those it added.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        template: Node,
        daemon_pods: Sequence[Pod],
        max_nodes: int | None,
        start: int,
    ) -> None:
        self.added: list[str] = []
        self.start = start
        self.may_add = True
        self.divided = 0
        self.pausing: int | None = None
        """After so many nodes that were looked at one by one ``pack`` comes back before its time, and ``go_on`` goes on; None for never."""
        self._going: ForkedGroup | None = None
        self._snapshot = snapshot
        self._template = template
        self._daemon_pods = daemon_pods
        self._existing = len(snapshot)
        self._max_nodes = max_nodes
        self._used: dict[int, None] = {}

    def pack(self, group: PodGroup) -> dict[int, int]:
        """Pack one group and return its pods by row."""
        work = ForkedGroup(self._snapshot, group)
        if self.added and not self._template.spec.unschedulable:
            self.start = work.scan(self._existing, self.start)
        self._going = work
        return self.go_on()

    @property
    def is_paused(self) -> bool:
        """Return whether the group packed last needs more nodes than ``pausing`` allows."""
        return self._going is not None

    def go_on(self) -> dict[int, int]:
        """Continue the group for which ``pack`` returned early, and return its pods by row."""
        work = self._going
        assert work is not None, "pack came back before its time"
        self._going = None
        if work.left and self.may_add:
            self._fill_new_nodes(work)
        self._used.update(dict.fromkeys(work.placed))
        return work.placed

    def pack_by_division(self, group: PodGroup) -> tuple[dict[int, int], int]:
        """Pack the last group: fill one new node, and divide the rest by its number of pods.

        Return the pods by row, and how many are on nodes that were only counted. The node added last
        is not used again, and what copies mean to each other is not looked at.
        """
        work = ForkedGroup(self._snapshot, group)
        if self.added and not self._template.spec.unschedulable:
            self.start = work.scan(self._existing, self.start)
        if not work.left or not self.may_add:
            return work.placed, 0
        if self._nodes_left() == 0:
            self.may_add = False
            return work.placed, 0
        self._add(1)
        left, row = work.left, len(self._snapshot) - 1
        each = min(left, work.capacity_of(row))
        work.put_on(row, each)
        if not each:
            return work.placed, 0
        needed = -(-left // each) - 1
        capacity = self._nodes_left()
        self.divided = needed if capacity is None else min(needed, capacity)
        self.may_add = self.divided == needed
        return work.placed, min(work.left, self.divided * each)

    def _nodes_left(self) -> int | None:
        return None if self._max_nodes is None else max(0, self._max_nodes - len(self.added))

    def _fill_new_nodes(self, work: ForkedGroup) -> None:
        before: int | None = None  # what the last node took, when it was new and nothing else took any
        while work.left:
            fallen_back = False
            if self.added:
                last = len(self._snapshot) - 1
                while work.left:
                    if work.fill(last) and work.left:
                        continue
                    if not work.left or not self._fall_back(work, last):
                        break
                    fallen_back = True
                if not work.left or (last not in self._used and last not in work.placed):
                    return
                took = work.placed.get(last, 0) if last >= work.first_new else None
                alike = not work.pod_class.names_nodes and not work.has_own_claims
                if took and took == before and alike and not fallen_back:
                    repeated = self._repeat(work, took)
                    if repeated and not (work.left and self._is_part_over):
                        continue
                before = None if fallen_back else took
            if self._max_nodes is not None and len(self.added) >= self._max_nodes:
                self.may_add = False
                return
            if self._is_part_over:
                self._going = work
                return
            if self.pausing is not None:
                self.pausing -= 1
            self._add(1)
            if not work.capacity_of(len(self._snapshot) - 1):
                return

    @property
    def _is_part_over(self) -> bool:
        return self.pausing is not None and self.pausing <= 0

    def _repeat(self, work: ForkedGroup, each: int) -> bool:
        """Add nodes that take as many pods as the two before, as long as the next one sees nothing different.

        Return whether there are any. When they are full, a pod may fall back on another node.
        """
        if work.may_open_others() or work.is_spread_with(self._daemon_pods):
            return False
        last = len(self._snapshot) - 1
        number = min(work.left, work.shared_quota(last)) // each
        number = min(number, work.nodes_before_least_counts())
        if self._max_nodes is not None:
            number = min(number, self._max_nodes - len(self.added))
        if self.pausing is not None and number > REPEATED_IN_A_PART:
            number, self.pausing = REPEATED_IN_A_PART, 0
        if number > 0:
            first = len(self._snapshot)
            self._add(number)
            work.put(np.arange(first, first + number), np.full(number, each, np.int64))
        return number > 0

    def _add(self, number: int) -> None:
        first = len(self.added)
        names = [f"{self._template.metadata.name}-e-{at}" for at in range(first, first + number)]
        self.added += names
        self._snapshot.add_templates(self._template, self._daemon_pods, names)

    def _fall_back(self, work: ForkedGroup, last: int) -> bool:
        """Place one pod or more anywhere but on the last node, where spreading by hostname rejects it."""
        if not work.pod_class.spreads_by_hostname:
            return False
        refusal = self._snapshot.first_refusal(work.pod_class, self._snapshot.node_names[last])
        if refusal is None or SPREAD_REASON not in refusal.reasons:
            return False
        start = work.fall_back(last, self.start)
        if start is None:
            return False
        self.start = start
        return True
