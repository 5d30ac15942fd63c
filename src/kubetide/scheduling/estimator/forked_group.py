"""The pods of one group on a fork: as many copies as the arithmetic allows are counted in one go.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.scheduling.snapshot.verdicts import Known
from kubetide.units.vectors import BoolVector, Int64Vector


class ForkedGroup:
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

    def may_open_others(self) -> bool:
        """Return whether pods on new nodes may open nodes of other domains, on which pods may then fall back.

        Where the domain of the new nodes has the fewest pods, each pod on them lets the other domains have more.
        """
        known = self._known
        terms = terms_of(known) or ()
        others = [term for term in terms if not (isinstance(term, SpreadTerm) and is_shared(term))]
        if len(others) == len(terms) or not self.pod_class.spreads_by_hostname:
            return False
        capacity = self._capacity(known, others, known.static & ~np.array(self._snapshot.unschedulable))
        for term in others:
            if isinstance(term, SpreadTerm) and term.counted:
                np.minimum(capacity, places_of(term, 0, len(capacity)), out=capacity)
        return bool(capacity.any())

    def is_spread_with(self, daemon_pods: Sequence[Pod]) -> bool:
        """Return whether each new node takes from what their domain may still have, by DaemonSet pods that it comes with."""
        if not daemon_pods:
            return False
        terms = terms_of(self._known) or ()
        tables = {
            term.table for term in terms if isinstance(term, SpreadTerm) and term.topology_key != HOSTNAME
        }
        return any(
            table in tables
            for pod_class in dict.fromkeys(map(classify_unbound, daemon_pods))
            for table in self._snapshot.counted_in(pod_class)
        )

    def nodes_before_least_counts(self) -> int:
        """Return how many nodes can be added before a spread by hostname has the domains that it requires.

        With so many domains the least-filled one is no longer taken for empty, so the next node may take more.
        """
        terms = terms_of(self._known) or ()
        return min(
            (
                term.rule.min_domains - term.table.domains - 1
                for term in terms
                if isinstance(term, SpreadTerm)
                and term.topology_key == HOSTNAME
                and not term.rule.counts_least(term.table.domains)
            ),
            default=UNLIMITED,
        )

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
