"""All columns of a snapshot: those of nodes, and counts of pods per node and domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np

from kubetide.objects.node import Node
from kubetide.scheduling.columns.counting import (
    READ_INTER_POD_KEY,
    AskingPods,
    CountColumn,
    CountKey,
    Domains,
    DomainTable,
    GuardingPods,
)
from kubetide.scheduling.columns.node_rows import NodeRows
from kubetide.scheduling.columns.pod_index import ByMark, PodKinds, choices_of, marks_of
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.pods.pod_class import PodClass, Use
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.node_pods import NodePods
from kubetide.scheduling.thresholds import DOMAINS_EXTENDED_BY_COPIES, POD_INDEX_CHANGES
from kubetide.units.vectors import BoolVector, Int64Vector

_MEMO_SIZE = 1 << 14


class Rows(NodeRows):
    """All columns of a snapshot: ``NodeRows`` and counts. Only ``Snapshot`` writes; filters read."""

    def __init__(
        self,
        capacity: int = 16,
        *,
        facts: ClusterFacts,
        pods: Mapping[str, NodePods],
    ) -> None:
        super().__init__(capacity)
        self.facts = facts
        self.devices: Ledger | None = None
        self.pods = pods
        self.counts: dict[CountKey, CountColumn] = {}
        self.guards: list[GuardingPods] = []
        self.asks: list[AskingPods] = []
        self._guarded: dict[PodClass, tuple[int, tuple[GuardingPods, ...]]] = {}
        self._counted: dict[tuple[PodClass | bytes, bool], tuple[int, tuple[CountColumn, ...]]] = {}
        """By ``PodClass.inter_pod_key``, where there is that and only such keys are counted as read no more."""
        self._reads_more = False
        self._counting: dict[int, tuple[Use, int, tuple[CountColumn, ...]]] = {}
        """The same by the identity of a use, which is held here so that it stays unique."""
        self._guards_by_mark: ByMark[GuardingPods] = ByMark()
        self._asks_by_mark: ByMark[AskingPods] = ByMark()
        self._counts_by_mark: ByMark[CountKey] = ByMark()
        self._kinds: PodKinds | None = None
        self._domains: dict[tuple[str, Hashable], Domains] = {}

    def extend(self, nodes: Sequence[Node], template: object) -> bool:
        """Add rows for copies of a template; return False if domains have changed, so that judges are invalid.

        Copies differ in their names and the label of the hostname. ``template`` stands for what is the same.
        """
        capacity = self.capacity
        self.append_copies(nodes)
        domains = self._domains.values()
        extends = self.capacity == capacity and len(domains) <= DOMAINS_EXTENDED_BY_COPIES
        if extends and all(one.append_copies(self.n, template) for one in domains):
            return True
        self.drop_tables()
        return False

    def shrink(self, count: int) -> None:
        """Undo the last ``extend`` of this number of rows; judges are valid as before."""
        self.pop(count)
        for domains in self._domains.values():
            domains.pop(self.n)

    def pods_on(self, row: int) -> Iterator[PodClass]:
        """Yield the class of each pod on a row."""
        there = self.pods.get(self.names[row])
        for use in there.uses if there is not None else ():
            yield use.pod_class

    def count_column(self, key: CountKey) -> CountColumn:
        """Return the column of a count key; built on first use, then kept up to date."""
        column = self.counts.get(key)
        if column is None:
            kinds = self._pod_kinds()
            choices = key.choices()
            meant = []
            for number in kinds.bearing(choices):
                pod_class, terminating = kinds.kinds[number]
                if key.counts(pod_class, self.facts, terminating=terminating):
                    meant.append(number)
            counts = np.zeros(self.capacity, np.int64) if meant else None
            if counts is not None:
                kinds.add_up(meant, counts)
            column = self.counts[key] = CountColumn(self.capacity, counts)
            self._counts_by_mark.add(choices, key)
            self._reads_more = self._reads_more or not isinstance(key, READ_INTER_POD_KEY)
        return column

    def forget_kinds(self) -> None:
        """Drop the index of pods; the next use rebuilds it in one pass over all pods."""
        self._kinds = None

    def _pod_kinds(self) -> PodKinds:
        if self._kinds is None:
            row_of = self.row_of
            self._kinds = PodKinds(
                (row, there.uses)
                for name, there in self.pods.items()
                if (row := row_of.get(name)) is not None
            )
        return self._kinds

    def add_guards(self, pod_class: PodClass) -> bool:
        """Build the columns of a class's anti-affinity before its first pod is placed; return whether any is new."""
        new = [key for key in map(GuardingPods, pod_class.anti_affinity) if key not in self.counts]
        for key in dict.fromkeys(new):
            self.count_column(key)
            self.guards.append(key)
            self._guards_by_mark.add(choices_of(key.term.selector), key)
        return bool(new)

    def add_asks(self, pod_class: PodClass) -> None:
        """Build the columns of a class's terms that score other pods, before its first pod is placed."""
        for ask in pod_class.preferences.asking:
            key = AskingPods(*ask)
            if key not in self.counts:
                self.count_column(key)
                self.asks.append(key)
                self._asks_by_mark.add(choices_of(key.term.selector), key)

    def asks_of(self, pod_class: PodClass, since: int = 0) -> Sequence[AskingPods]:
        """Return the other pods' scoring terms that match a pod of the class, without the first ``since`` ever added."""
        namespace, labels, known = pod_class.namespace, pod_class.labels, self.facts.namespaces
        asked = self._asks_by_mark.borne(labels.items(), since)
        return [key for key in asked if key.term.guards(namespace, labels, known)]

    def guards_of(self, pod_class: PodClass) -> Sequence[GuardingPods]:
        """Return the anti-affinity terms of pods that repel the class from their domains."""
        seen, found = self._guarded.get(pod_class, (0, ()))
        if seen < len(self.guards):
            if len(self._guarded) >= _MEMO_SIZE:
                self._guarded.clear()
            namespace, labels, known = pod_class.namespace, pod_class.labels, self.facts.namespaces
            asked = self._guards_by_mark.borne(labels.items(), seen)
            more = [key for key in asked if key.term.guards(namespace, labels, known)]
            found = (*found, *more)
            self._guarded[pod_class] = (len(self.guards), found)
        return found

    def table(
        self,
        key: CountKey,
        topology_key: str,
        eligibility: Hashable = None,
        eligible: Callable[[], BoolVector | None] = lambda: None,
        *,
        copies_differ: bool = False,
    ) -> DomainTable:
        """Return the counts of a key by the values of a node label.

        Args:
            key: Which pods.
            topology_key: The label.
            eligibility: Says which nodes take part; equal values mean the same nodes.
            eligible: Gives these nodes, or None for all; asked when the table is made, and when nodes come.
            copies_differ: Whether of copies of one template some may take part and some not.
        """
        return self.table_of(
            self.count_column(key), topology_key, eligibility, eligible, copies_differ=copies_differ
        )

    def table_of(
        self,
        column: CountColumn,
        topology_key: str,
        eligibility: Hashable = None,
        eligible: Callable[[], BoolVector | None] = lambda: None,
        *,
        copies_differ: bool = False,
    ) -> DomainTable:
        """Return the result of ``table`` for a column at hand."""
        table = column.tables.get((topology_key, eligibility))
        if table is None:
            domains = self._domains_of(topology_key, eligibility, eligible, copies_differ=copies_differ)
            table = DomainTable([column], self.n, domains)
            column.tables[topology_key, eligibility] = table
        return table

    def _domains_of(
        self,
        topology_key: str,
        eligibility: Hashable = None,
        eligible: Callable[[], BoolVector | None] = lambda: None,
        *,
        copies_differ: bool = False,
    ) -> Domains:
        """Return the values of a label over the nodes that take part; cached until nodes change."""
        domains = self._domains.get((topology_key, eligibility))
        if domains is None:
            label = self.label(topology_key)
            domains = Domains(label, self.n, self.capacity, eligible, copies_differ=copies_differ)
            self._domains[topology_key, eligibility] = domains
        return domains

    def joint_table(self, keys: Sequence[CountKey], topology_key: str) -> DomainTable:
        """Return the summed counts of the keys by the values of a node label; a pod counts once per key."""
        if len(keys) == 1:
            return self.table(keys[0], topology_key)
        columns = [self.count_column(key) for key in keys]
        name = (topology_key, tuple(map(id, columns)))
        table = columns[0].tables.get(name)
        if table is None:
            table = DomainTable(columns, self.n, self._domains_of(topology_key))
            # Each column keeps it up to date.
            for column in columns:
                column.tables[name] = table
        return table

    def drop_tables(self) -> None:
        """Drop domains and their tables: nodes have changed."""
        self._domains.clear()
        for column in self.counts.values():
            column.tables.clear()

    def drop_counts(self) -> None:
        """Drop the counts that depend on changed facts: all but those of guards and asks."""
        stay: tuple[CountKey, ...] = (*self.guards, *self.asks)
        self.counts = {key: self.counts[key] for key in stay}
        self._find_by_mark()
        if not self.counts:
            self.forget_kinds()  # changes are not announced where nothing is counted
        self._counted.clear()
        self._counting.clear()
        self._guarded.clear()
        self.drop_tables()

    def forget_counts(self) -> None:
        """Drop unused counts; the next use rebuilds them."""
        self.guards = [key for key in self.guards if self.counts[key].vector(self.n).any()]
        self.asks = [key for key in self.asks if self.counts[key].vector(self.n).any()]
        self._guarded.clear()
        self.drop_counts()

    def count(self, row: int, use: Use, sign: int) -> None:
        """Count a pod on a row (+1), or remove it (-1)."""
        known = self._counting.get(id(use))
        if known is None or known[1] < self._counts_by_mark.number:
            if len(self._counting) >= _MEMO_SIZE:
                self._counting.clear()
            columns = self.counting(use.pod_class, terminating=use.terminating)
            known = self._counting[id(use)] = (use, self._counts_by_mark.number, columns)
        for column in known[2]:
            column.add(row, sign)
        kinds = self._kinds
        if kinds is not None:
            kinds.change(use, row, sign)
            most = POD_INDEX_CHANGES + len(kinds) // 4
            if kinds.changed > most or kinds.came > most:
                self.forget_kinds()

    def add_copies(self, pod_class: PodClass, rows: Int64Vector, numbers: Int64Vector, sign: int) -> None:
        """Charge and count pods of a class, ``numbers`` of them on each of the distinct rows."""
        for key, amount in pod_class.charges:
            self.columns[key].free[rows] -= sign * amount * numbers
        if self.counts:
            for column in self.counting(pod_class, terminating=False):
                column.add_many(rows, sign * numbers)

    def charge_many(self, rows: Int64Vector, use: Use, numbers: Int64Vector) -> None:
        """Charge and count pods on each of the distinct rows."""
        for key, amount in use.charges:
            self.columns[key].free[rows] -= amount * numbers
        self.forget_kinds()
        if self.counts:
            for column in self.counting(use.pod_class, terminating=use.terminating):
                column.add_many(rows, numbers)

    def counting(self, pod_class: PodClass, *, terminating: bool) -> tuple[CountColumn, ...]:
        """Return the columns that count a pod of the class."""
        kind = (pod_class if self._reads_more else pod_class.inter_pod_key or pod_class, terminating)
        seen, columns = self._counted.get(kind, (0, ()))
        if seen < self._counts_by_mark.number:
            if len(self._counted) >= _MEMO_SIZE:
                self._counted.clear()
            asked = self._counts_by_mark.borne(marks_of(pod_class), seen)
            more = [
                self.counts[key]
                for key in asked
                if key.counts(pod_class, self.facts, terminating=terminating)
            ]
            columns = (*columns, *more)
            self._counted[kind] = (self._counts_by_mark.number, columns)
        return columns

    def _find_by_mark(self) -> None:
        self._counts_by_mark, self._guards_by_mark, self._asks_by_mark = ByMark(), ByMark(), ByMark()
        for key in self.counts:
            self._counts_by_mark.add(key.choices(), key)
        for guard in self.guards:
            self._guards_by_mark.add(choices_of(guard.term.selector), guard)
        for ask in self.asks:
            self._asks_by_mark.add(choices_of(ask.term.selector), ask)

    def without(self, dead: Mapping[int, None]) -> Rows:
        """Return a copy without some rows, in the same order; the original is unchanged."""
        keep = np.ones(self.n, np.bool_)
        keep[list(dead)] = False
        compacted = Rows(capacity=max(16, self.capacity), facts=self.facts, pods=self.pods)
        compacted.devices = self.devices
        compacted.n = self.n - len(dead)
        compacted.names = [name for row, name in enumerate(self.names) if row not in dead]
        compacted.nodes = [node for row, node in enumerate(self.nodes) if row not in dead]
        compacted.row_of = {name: row for row, name in enumerate(compacted.names)}
        compacted.ports = {key: list(ports) for key, ports in self.ports.items()}
        compacted._unschedulable[: compacted.n] = self.unschedulable[keep]
        # Made anew: sets that only removed nodes had would pile up, as some taints carry a time.
        for row, node in enumerate(compacted.nodes):
            compacted._taint_codes[row] = compacted._taint_code(node)
        for name, column in self.columns.items():
            compacted.add_column_of(name, column.allocatable[: self.n][keep], column.free[: self.n][keep])
        for key, counted in self.counts.items():
            counts = np.zeros(compacted.capacity, np.int64)
            counts[: compacted.n] = counted.vector(self.n)[keep]
            compacted.counts[key] = CountColumn(compacted.capacity, counts)
        compacted.guards, compacted.asks = list(self.guards), list(self.asks)
        compacted._find_by_mark()
        compacted._reads_more = self._reads_more
        if self._kinds is not None:
            row_of = np.where(keep, np.cumsum(keep) - 1, -1)
            compacted._kinds = self._kinds.renumbered(row_of)
        return compacted

    def _grow(self) -> None:
        super()._grow()
        for counted in self.counts.values():
            counted.resize(self.capacity)
