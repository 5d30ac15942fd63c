"""Inter-pod rules as terms with counts: read from a snapshot, for nodes that do not exist yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.columns.columns import LabelColumn
from kubetide.scheduling.columns.counting import DomainTable
from kubetide.scheduling.filters.inter_pod_terms import Counted, InterPodTerms, inter_pod_terms
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.terms import SpreadConstraint
from kubetide.scheduling.snapshot.snapshot import Snapshot

Domains = tuple[int, ...]
"""Of an offer, the code of its value of each label that terms are about; 0 without the label."""

Place = tuple[Domains, tuple[int, ...]]
"""What offers of the same are alike to all rules: domains, and the terms that DaemonSets' pods count for."""


class Term:
    """The pods that one rule selects, counted by the values of one label.

    Attributes:
        at: Which of the labels; -1 for the hostname.
        counts: Pods by code of the value; what stands at 0 means nothing.
        here: Pods on the node that is being filled.
        total: Pods in all domains.
        start, started_with: Counts and total as the snapshot has them.
        present: Codes of domains that exist.
        most: Pods that each domain may come to have, where they are shared out.
    """

    __slots__ = ("at", "counts", "here", "most", "present", "start", "started_with", "total")

    def __init__(self, at: int, table: DomainTable, domains: int) -> None:
        self.at = at
        self.counts = [int(count) for count in table.counts]
        self.counts += [0] * (domains + 1 - len(self.counts))
        self.start = tuple(self.counts)
        self.here = 0
        self.total = self.started_with = table.total
        self.present = {code for code, there in enumerate(table.present.tolist()) if there}
        self.most: list[int] | None = None


@dataclass(slots=True)
class SpreadRule:
    """A spread constraint, and the pods that it counts."""

    term: Term
    rule: SpreadConstraint


@dataclass(slots=True)
class InterPodRules:
    """The rules of pods with one ``PodClass.inter_pod_key``.

    Attributes:
        spread: Its constraints.
        apart: Terms of which no pod may be in the domain: its own, and those that keep it away.
        near: Terms of which a pod must be in the domain, all of them.
        matches_itself: Whether it is one of those that ``near`` asks for.
        anchor: The only domains for that first one, by the labels of ``near``.
        adds: Terms that count it; a term that counts it twice is there twice.
        touched: Numbers of the rules whose answer may change when such a pod is placed.
        a_node: Most of its pods on one node, 0 for no such rule.
    """

    spread: tuple[SpreadRule, ...] = ()
    apart: tuple[Term, ...] = ()
    near: tuple[Term, ...] = ()
    matches_itself: bool = False
    anchor: Domains | None = None
    adds: tuple[Term, ...] = ()
    touched: tuple[int, ...] = ()
    a_node: int = 0

    @property
    def reads(self) -> tuple[Term, ...]:
        """The terms that the rule reads."""
        return (*self.apart, *self.near, *(one.term for one in self.spread))


def is_plain(snapshot: Snapshot, pod_class: PodClass) -> bool:
    """Return whether all inter-pod rules of the class have a supported form; adds its guards to the snapshot."""
    if pod_class.inter_pod_key is None or pod_class.ports or pod_class.names_nodes:
        return False
    if snapshot.asks_for_devices(pod_class):
        return False
    # Copies of one another on a new node of their own: whether all fit there is for the estimator.
    if any(term.topology_key == HOSTNAME for term in pod_class.affinity):
        return False
    return inter_pod_terms(snapshot.prepare(pod_class).judges) is not None


@dataclass(slots=True)
class _Labels:
    """The labels that terms are about, and the numbers of their values."""

    codes: dict[str, dict[str | None, int]] = field(default_factory=dict)

    def note(self, key: str, column: LabelColumn, nodes: Sequence[Node]) -> None:
        if key == HOSTNAME or key in self.codes:
            return
        codes: dict[str | None, int] = dict(column.code_of.items())
        self.codes[key] = codes
        for node in nodes:
            value = (node.metadata.labels or {}).get(key)
            if value is not None:
                codes.setdefault(value, len(codes) + 1)

    def of(self, node: Node) -> Domains:
        labels = node.metadata.labels or {}
        # A list: a generator takes twice as long, and there are hundreds of offers.
        return tuple([codes.get(labels.get(key), 0) for key, codes in self.codes.items()])


class Reader:
    """Reads inter-pod rules and their shared terms."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._labels = _Labels()
        self._terms: dict[DomainTable, Term] = {}
        self._added: dict[PodClass, tuple[Term, ...]] = {}

    @property
    def terms(self) -> list[Term]:
        """All terms read so far."""
        return list(self._terms.values())

    def read(self, classes: Sequence[PodClass], nodes: Sequence[Node]) -> list[InterPodRules]:
        """Return the rules of classes for which ``is_plain`` holds; ``nodes`` give the labels of new nodes."""
        found = (inter_pod_terms(self._snapshot.prepare(one).judges) for one in classes)
        terms = [one for one in found if one is not None]
        reads = {read.table: read for one in terms for read in one.reads}
        for read in reads.values():
            self._labels.note(read.topology_key, read.label, nodes)
        self._terms = {table: self._term(read) for table, read in reads.items()}
        every = [self._rules(one) for one in terms]
        for rules, pod_class in zip(every, classes, strict=True):
            rules.adds = self._added_by(pod_class)
        _link(every)
        return every

    def domains_of(self, node: Node) -> Domains:
        """Return the domains of a new node."""
        return self._labels.of(node)

    def counted(self, pods: Iterable[Pod]) -> tuple[Term, ...]:
        """Return the terms that count pods of DaemonSets."""
        return tuple(term for pod in pods for term in self._added_by(classify_unbound(pod)))

    def _term(self, read: Counted) -> Term:
        codes = self._labels.codes
        if read.topology_key == HOSTNAME:
            return Term(-1, read.table, 0)
        return Term(list(codes).index(read.topology_key), read.table, len(codes[read.topology_key]))

    def _rules(self, given: InterPodTerms) -> InterPodRules:
        terms, near = self._terms, given.near
        return InterPodRules(
            spread=tuple(SpreadRule(terms[one.table], one.rule) for one in given.spread),
            apart=tuple(terms[one.table] for one in given.apart),
            near=tuple(terms[read.table] for read in near.reads) if near else (),
            matches_itself=near is not None and near.matches_itself,
        )

    def _added_by(self, pod_class: PodClass) -> tuple[Term, ...]:
        found = self._added.get(pod_class)
        if found is None:
            tables = self._snapshot.counted_in(pod_class)
            found = self._added[pod_class] = tuple(self._terms[one] for one in tables if one in self._terms)
        return found


def _link(every: list[InterPodRules]) -> None:
    readers: dict[int, list[int]] = {}
    for number, rules in enumerate(every):
        for term in rules.reads:
            readers.setdefault(id(term), []).append(number)
    for rules in every:
        touched = (number for term in rules.adds for number in readers.get(id(term), ()))
        rules.touched = tuple(dict.fromkeys(touched))
        added = set(map(id, rules.adds))
        alone = [1 for term in rules.apart if term.at < 0 and id(term) in added]
        few = [max(1, one.rule.max_skew) for one in rules.spread if one.term.at < 0 and id(one.term) in added]
        rules.a_node = min((*alone, *few), default=0)
