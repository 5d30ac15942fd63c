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
from kubetide.scheduling.estimator.capacity import (
    capacity_by_amounts,
    is_shared,
    lowest_of,
    may_loosen,
    places_of,
    terms_of,
)
from kubetide.scheduling.estimator.round_robin import go_round
from kubetide.scheduling.filters.base import UNLIMITED, Term
from kubetide.scheduling.filters.inter_pod_terms import SpreadTerm
from kubetide.scheduling.filters.pod_topology_spread import REASON as SPREAD_REASON
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.scheduling.snapshot.verdicts import Known
from kubetide.units.vectors import BoolVector, Int64Vector

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
        self._going: _Group | None = None
        self._snapshot = snapshot
        self._template = template
        self._daemon_pods = daemon_pods
        self._existing = len(snapshot)
        self._max_nodes = max_nodes
        self._used: dict[int, None] = {}

    def pack(self, group: PodGroup) -> dict[int, int]:
        """Pack one group and return its pods by row."""
        work = _Group(self._snapshot, group)
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
        work = _Group(self._snapshot, group)
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

    def _fill_new_nodes(self, work: _Group) -> None:
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
                if took and took == before and not fallen_back and alike:
                    self._repeat(work, took)
                    if not work.left:
                        return
                before = None if fallen_back else took
            if self._max_nodes is not None and len(self.added) >= self._max_nodes:
                self.may_add = False
                return
            if self.pausing is not None:
                if self.pausing <= 0:
                    self._going = work
                    return
                self.pausing -= 1
            self._add(1)
            if not work.capacity_of(len(self._snapshot) - 1):
                return

    def _repeat(self, work: _Group, each: int) -> None:
        """Add nodes that take as many pods as the two before: nothing that the next one sees is different."""
        last = len(self._snapshot) - 1
        number = min(work.left, work.shared_quota(last)) // each
        if self._max_nodes is not None:
            number = min(number, self._max_nodes - len(self.added))
        if self.pausing is not None and number > REPEATED_IN_A_PART:
            number, self.pausing = REPEATED_IN_A_PART, 0
        if number > 0:
            first = len(self._snapshot)
            self._add(number)
            work.put(np.arange(first, first + number), np.full(number, each, np.int64))

    def _add(self, number: int) -> None:
        first = len(self.added)
        names = [f"{self._template.metadata.name}-e-{at}" for at in range(first, first + number)]
        self.added += names
        self._snapshot.add_templates(self._template, self._daemon_pods, names)

    def _fall_back(self, work: _Group, last: int) -> bool:
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


class _Group:
    """The pods of one group that are still to be placed, and where the others went."""

    def __init__(self, snapshot: Snapshot, group: PodGroup) -> None:
        self.pod_class = group.pod_class
        self.left = len(group.pods)
        self.has_own_claims = snapshot.asks_for_devices(group.pod_class)
        """Whether copies are not alike: each has claims to devices of its own, so each is placed by itself."""
        self._pods = group.pods
        self._next = 0
        self.placed: dict[int, int] = {}
        self.first_new = len(snapshot)
        self._snapshot = snapshot

    @property
    def _known(self) -> Known:
        return self._snapshot.prepare(self.pod_class)

    def fill(self, row: int) -> bool:
        """Put as many pods on one row as it takes; True when it is to be asked again, as its pods differ."""
        one_by_one = terms_of(self._known) is None
        number = min(self.left, self.capacity_of(row))
        self.put_on(row, number)
        return number > 0 and one_by_one

    def put_on(self, row: int, number: int) -> None:
        """Put pods on one row."""
        if number:
            self.put(np.array([row]), np.array([number], np.int64))

    def put(self, rows: Int64Vector, numbers: Int64Vector) -> None:
        """Put pods on rows, each named once."""
        if self.has_own_claims:
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                self._put_pods(row, number)
        else:
            self._snapshot.add_copies(self.pod_class, rows, numbers)
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            self.placed[row] = self.placed.get(row, 0) + number
        self.left -= int(numbers.sum())

    def _put_pods(self, row: int, number: int) -> None:
        name = self._snapshot.node_names[row]
        for pod in self._pods[self._next : self._next + number]:
            self._snapshot.add_pod(pod, name)
        self._next += number
        if self._next < len(self._pods):
            self.pod_class = classify_unbound(self._pods[self._next])

    def capacity_of(self, row: int) -> int:
        """Return how many pods one row takes one after another."""
        known = self._known
        if not known.static_cells[row] or not known.has_capacity(row):
            return 0
        terms = terms_of(known)
        if terms is None:
            return 1
        capacity = int(capacity_by_amounts(known, self.pod_class, row, row + 1)[0])
        return min([capacity, *(term.quota(row) for term in terms)])

    def shared_quota(self, row: int) -> int:
        """Return how many pods all new nodes together take by conditions that they share with the row."""
        terms = terms_of(self._known) or ()
        return min((term.quota(row) for term in terms if is_shared(term)), default=UNLIMITED)

    def scan(self, existing: int, start: int) -> int:
        """Deal pods out over the added nodes, the rows from ``existing`` on; return where the next scan begins."""
        while self.left:
            known = self._known
            n = len(self._snapshot)
            terms = terms_of(known)
            levels = [term for term in terms or () if term.level and term.counted and not is_shared(term)]
            one_by_one = terms is None or self.pod_class.names_nodes or len(levels) > 1
            first_decides = any(not term.counted and may_loosen(term) for term in terms or ())
            if one_by_one or first_decides:
                blocked = np.array(self._snapshot.unschedulable)
                blocked[:existing] = True
                if one_by_one:
                    return self._one_by_one(blocked, start)
                # The first pod of its kind decides where the others may stand.
                row = self._snapshot.first_fit(self.pod_class, start, blocked)
                if row < 0:
                    return start
                self.put_on(row, 1)
                start = row + 1
                continue
            quota = self.left
            if existing < n:
                quota = min(quota, self.shared_quota(n - 1))
            capacity = self._capacity(known, terms or (), known.static[existing:], existing)
            if levels:
                return self._deal_levels(levels[0], capacity, quota, start, existing)
            return self._deal(capacity, quota, start, existing)
        return start

    def fall_back(self, last: int, start: int) -> int | None:
        """Place pods on any node but the last, until that may take one again; None when no node takes any."""
        known = self._known
        blocked = np.array(self._snapshot.unschedulable)
        blocked[last] = True
        terms = terms_of(known)
        changing = [term for term in terms or () if term.counted or may_loosen(term)]
        alone = len(changing) == 1 and isinstance(changing[0], SpreadTerm)
        if terms is None or not alone or changing[0].topology_key != HOSTNAME or self.pod_class.names_nodes:
            row = self._snapshot.first_fit(self.pod_class, start, blocked)
            if row < 0:
                return None
            self.put_on(row, 1)
            return row + 1
        left = self.left
        capacity = self._capacity(known, terms, known.static & ~blocked)
        after = self._deal_levels(changing[0], capacity, left, start, once=True)
        return after if self.left < left else None

    def _one_by_one(self, blocked: BoolVector, start: int) -> int:
        while self.left:
            row = self._snapshot.first_fit(self.pod_class, start, blocked)
            if row < 0:
                break
            self.put_on(row, 1)
            start = row + 1
        return start

    def _capacity(
        self, known: Known, terms: Sequence[Term], open_rows: BoolVector, first: int = 0
    ) -> Int64Vector:
        """Return how many pods each row from first on takes, but for spreading by hostname and for what new nodes share.

        ``open_rows`` says which of them may be used at all.
        """
        capacity = capacity_by_amounts(known, self.pod_class, first, first + len(open_rows))
        capacity[~open_rows] = 0
        for term in terms:
            if term.counted and not is_shared(term):
                if not term.level:
                    capacity[~term.nodes(first)] = 0
                    np.minimum(capacity, 1, out=capacity)
            else:
                capacity[~term.nodes(first)] = 0
        return np.minimum(capacity, self.left, out=capacity)

    def _deal(self, capacity: Int64Vector, quota: int, start: int, first: int = 0) -> int:
        """Deal pods out over the rows from first on, going round all rows from ``start``."""
        if quota <= 0 or not len(capacity):
            return start
        fill = go_round(capacity, quota, max(0, start % (first + len(capacity)) - first))
        if fill.last < 0:
            return start
        rows = np.flatnonzero(fill.taken)
        self.put(rows + first, fill.taken[rows])
        return first + fill.last + 1

    def _deal_levels(
        self, term: Term, capacity: Int64Vector, quota: int, start: int, first: int = 0, *, once: bool = False
    ) -> int:
        """Deal pods out under one spread by hostname, pass by pass while its minimum rises.

        ``once`` ends it as soon as the minimum may have risen.
        """
        assert isinstance(term, SpreadTerm)
        while quota > 0:
            places = np.minimum(capacity, places_of(term, first, first + len(capacity)))
            table = term.table
            lowest = lowest_of(table, first)
            rises = term.rule.counts_least(table.domains) and not np.any(lowest & (places == 0))
            if not rises or (first and np.any(lowest_of(table, 0, first))):
                return self._deal(places, quota, start, first)
            # One pod each, in the order of the scan, up to the last of the least-filled nodes.
            served = np.flatnonzero(places)
            begin = int(np.searchsorted(served, max(0, start % (first + len(capacity)) - first)))
            served = np.concatenate([served[begin:], served[:begin]])
            ends = np.flatnonzero(lowest[served])
            served = served[: min(quota, int(ends[-1]) + 1)]
            if not len(served):
                return start
            self.put(served + first, np.ones(len(served), np.int64))
            capacity[served] -= 1
            quota -= len(served)
            start = first + int(served[-1]) + 1
            if once:
                return start
        return start
