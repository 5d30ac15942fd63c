"""Pack pods one by one in plain numbers; used when almost every pod is unique.

With few equal pods, counting copies in one go gains nothing; the work for each pod takes the time. So the
requirements of the classes are turned into numbers before (``conditions``), the first nodes are checked one
by one, and only then all others by vectors.

Source: cluster-autoscaler core (Jul 2026), binpacking estimator, standard path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubetide.scheduling.columns.columns import cells_of
from kubetide.scheduling.estimator.conditions import Conditions, OwnSpread
from kubetide.scheduling.filters.base import UNLIMITED
from kubetide.scheduling.pods.terms import is_first_of_its_kind
from kubetide.scheduling.thresholds import NEW_NODES_ONE_BY_ONE
from kubetide.units.vectors import Int64Vector

_FIRST_SIZE = 16


class Kind(NamedTuple):
    """The requirements of one pod kind on the new nodes of an estimate, and the amounts that it takes.

    Attributes:
        gates: Columns, and how much must be left in them.
        size: The same number for kinds of the same gates.
        charges: Columns, and how much a pod takes of them.
        conditions: The inter-pod rules of the pods.
        falls_back: Whether a pod that spreading rejects on the node added last may go to any other node.
        may_borrow: Whether that may be an existing node.
    """

    gates: tuple[tuple[int, int], ...]
    size: int
    charges: tuple[tuple[int, int], ...]
    conditions: Conditions
    falls_back: bool
    may_borrow: bool


class NeedsExistingNode(Exception):  # no error: the caller estimates another way
    """A pod may go to an existing node, and this packing does not know the existing nodes."""


_Own = list[tuple[dict[int, int], int, int]]
"""Pods on nodes by some own tally, and the least and the most that let one more in."""


class SinglePacking:
    """One estimate, pod by pod.

    Attributes:
        used: Of each node added, whether it has taken a pod.
        start: Row at which the next scan begins, existing nodes counted.
        may_add: Whether the limits still allow a node.
    """

    def __init__(
        self,
        stock: Sequence[int],
        counts: Sequence[int],
        own: int,
        *,
        existing: int,
        cordoned: bool,
        max_nodes: int | None,
        start: int,
    ) -> None:
        """Args: amounts of a new node by column, values of the shared tallies, and the number of own tallies."""
        self.used: list[bool] = []
        self.start = start
        self.may_add = True
        self._existing = existing
        self._cordoned = cordoned
        self._max_nodes = max_nodes
        self._stock = stock
        self._columns: list[Int64Vector] = [np.full(_FIRST_SIZE, amount, np.int64) for amount in stock]
        self._cells = [cells_of(column) for column in self._columns]
        self._counts = list(counts)
        self._own: list[dict[int, int]] = [{} for _ in range(own)]
        # By size: how many of the first nodes have too little left. They never have more again, and
        # pods of one size come one after another.
        self._full: dict[int, int] = {}

    def pack(self, kind: Kind, pods: int) -> dict[int, int]:
        """Pack the pods of one kind and return their numbers by new node."""
        placed: dict[int, int] = {}
        left = pods
        # The scan passes over cordoned nodes even where pods tolerate them; naming the node does not.
        scans = bool(self.used) and not self._cordoned
        while left and scans:
            at = self._scan(kind, len(self.used))
            if at < 0:
                break
            self._put(kind, at, placed)
            left -= 1
        while left and self.may_add:
            last = len(self.used) - 1
            if last >= 0:
                # A scan that has just found none has looked at the last node as well.
                at = -1 if scans or not self._takes(kind, last) else last
                scans = False
                if at < 0 and kind.falls_back:
                    at = self._fall_back(kind, last)
                if at >= 0:
                    self._put(kind, at, placed)
                    left -= 1
                    continue
                if not self.used[last]:
                    break
            if self._max_nodes is not None and last + 1 >= self._max_nodes:
                self.may_add = False
                break
            self._add_node()
            if not self._takes(kind, last + 1):
                break
            self._put(kind, last + 1, placed)
            left -= 1
        return placed

    def _add_node(self) -> None:
        self.used.append(False)
        if len(self.used) > len(self._columns[0]):
            self._columns = [
                np.concatenate([column, np.full(len(column), amount, np.int64)])
                for column, amount in zip(self._columns, self._stock, strict=True)
            ]
            self._cells = [cells_of(column) for column in self._columns]

    def _put(self, kind: Kind, at: int, placed: dict[int, int]) -> None:
        cells = self._cells
        for column, amount in kind.charges:
            cells[column][at] -= amount
        conditions = kind.conditions
        for tally in conditions.adds:
            self._counts[tally] += 1
        for tally in conditions.adds_own:
            here = self._own[tally]
            here[at] = here.get(at, 0) + 1
        self.used[at] = True
        placed[at] = placed.get(at, 0) + 1

    def _takes(self, kind: Kind, at: int) -> bool:
        """Return whether one node takes a pod."""
        if not self._has_capacity(kind, at):
            return False
        own = self._open(kind.conditions)
        if own is None:
            return False
        return all(low <= here.get(at, 0) <= high for here, low, high in own)

    def _has_capacity(self, kind: Kind, at: int) -> bool:
        cells = self._cells
        return all(cells[column][at] >= least for column, least in kind.gates)

    def _scan(self, kind: Kind, end: int) -> int:
        """Return the first node that takes a pod, going round those before ``end``, or -1; the next scan begins behind it."""
        full = self._full.get(kind.size, 0)
        own = self._open(kind.conditions) if full < end else None
        if own is None:
            return -1
        begin = self.start % (self._existing + len(self.used)) - self._existing
        if begin < full or begin >= end:
            begin = full
        cells, gates = self._cells, kind.gates
        at = begin
        for _ in range(min(end - full, NEW_NODES_ONE_BY_ONE)):
            for column, least in gates:
                if cells[column][at] < least:
                    break
            else:
                for here, low, high in own:
                    if not low <= here.get(at, 0) <= high:
                        break
                else:
                    self.start = self._existing + at + 1
                    return at
            at += 1
            if at == end:
                at = full
        if end - full > NEW_NODES_ONE_BY_ONE:
            at = self._first(kind, own, begin, full, end)
            if at >= 0:
                self.start = self._existing + at + 1
            return at
        if not own:
            self._full[kind.size] = end
        return -1

    def _first(self, kind: Kind, own: _Own, begin: int, full: int, end: int) -> int:
        """Return the first of the nodes from ``full`` to ``end`` that takes a pod, going round from ``begin``, or -1."""
        (column, least), *others = kind.gates
        fits = self._columns[column][:end] >= least
        for column, least in others:
            fits &= self._columns[column][:end] >= least
        if not fits[full:].any():
            self._full[kind.size] = end
            return -1
        for here, low, high in own:
            if low:
                without = np.ones(end, np.bool_)
                without[[at for at, pods in here.items() if at < end and pods >= low]] = False
                fits[without] = False
            else:
                fits[[at for at, pods in here.items() if at < end and pods > high]] = False
        for first, last in ((begin, end), (full, begin)):
            if first < last:
                at = first + int(fits[first:last].argmax())
                if fits[at]:
                    return at
        return -1

    def _fall_back(self, kind: Kind, last: int) -> int:
        """Return a node for a pod that spreading rejects on the last node, or -1. Raises NeedsExistingNode."""
        if not (self._has_capacity(kind, last) and self._is_skewed(kind.conditions, last)):
            return -1
        if kind.may_borrow:
            raise NeedsExistingNode
        return -1 if self._cordoned else self._scan(kind, last)

    def _is_skewed(self, conditions: Conditions, at: int) -> bool:
        for tally, most in conditions.skew_limits:
            if self._counts[tally] > most:
                return True
        return any(self._own[spread.tally].get(at, 0) > self._most(spread) for spread in conditions.skew)

    def _open(self, conditions: Conditions) -> _Own | None:
        """Return the conditions on the pods of a single node, or None when no node takes a pod."""
        if not conditions.binding:
            return []
        counts = self._counts
        for tally, most in conditions.limits:
            if counts[tally] > most:
                return None
        own = [(self._own[tally], 0, 0) for tally in conditions.apart]
        for spread in conditions.spread:
            most = self._most(spread)
            if most < 0:
                return None
            own.append((self._own[spread.tally], 0, most))
        if (conditions.near or conditions.near_own) and not self._may_begin(conditions):
            for tally in conditions.near:
                if not counts[tally]:
                    return None
            own += [(self._own[tally], 1, UNLIMITED) for tally in conditions.near_own]
        return own

    def _may_begin(self, conditions: Conditions) -> bool:
        here = [self._counts[tally] for tally in conditions.near]
        here += [len(self._own[tally]) for tally in conditions.near_own]
        return is_first_of_its_kind(here, conditions.may_begin)

    def _most(self, spread: OwnSpread) -> int:
        """Return how many pods a node may have for one more to be let in."""
        nodes, here = len(self.used), self._own[spread.tally]
        least = min(here.values()) if len(here) == nodes else 0
        return spread.rule.most(min(least, spread.least), spread.domains + nodes)
