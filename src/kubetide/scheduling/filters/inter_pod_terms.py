"""Inter-pod rules of a pod class as terms with counts per domain: spreading, affinity and anti-affinity.

Each term is compiled from a class and the rows of a snapshot. The filters evaluate terms, and whoever plans with nodes
that do not exist yet reads the same terms: the constraint, the tables that it counts in, and who begins.

Source: kube-scheduler v1.36 InterPodAffinity (required terms) and PodTopologySpread (DoNotSchedule constraints).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import ref

import numpy as np

from kubetide.objects.node import Node
from kubetide.scheduling.columns.columns import LabelColumn
from kubetide.scheduling.columns.counting import CountKey, DomainTable, MatchingPods, SpreadPods
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.base import UNLIMITED, Judge
from kubetide.scheduling.filters.node_affinity import NodeAffinity
from kubetide.scheduling.filters.taint_toleration import TaintToleration
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.terms import SpreadConstraint, is_first_of_its_kind
from kubetide.units.vectors import BoolVector

_AFFINITY = NodeAffinity()
_TAINTS = TaintToleration()


class Counted(NamedTuple):
    """The table where a term counts.

    Attributes:
        eligible: The nodes that take part; None where all with the label do.
    """

    table: DomainTable
    topology_key: str
    label: LabelColumn
    eligible: Eligible | None = None


class SpreadTerm:
    """One spread constraint.

    Attributes:
        counted: Whether pods of the class are among those that are counted.
    """

    level = True
    only_tightens = False

    __slots__ = ("_rows", "counted", "label", "reads", "rule", "table", "topology_key")

    def __init__(self, rule: SpreadConstraint, pod: PodClass, rows: Rows, eligible: Eligible) -> None:
        key = SpreadPods(pod.namespace, rule.selector)
        self.rule = rule
        self.topology_key = rule.topology_key
        self.table = rows.table(key, rule.topology_key, eligible, eligible, copies_differ=pod.names_nodes)
        self.label = rows.label(rule.topology_key)
        self.counted = key.counts(pod, rows.facts, terminating=False)
        self.reads = (Counted(self.table, rule.topology_key, self.label, eligible),)
        self._rows = rows

    def most(self) -> int:
        """Return the most pods that a domain may have to admit one more."""
        return self.rule.most(self.table.minimum(), self.table.domains)

    def most_in(self, code: int) -> int:
        """Return the most pods that one domain may have to admit one more, while the others stay unchanged.

        The domain takes part, be it with nodes to come. ``UNLIMITED`` where there is no other, below 0 for no pod at all.
        """
        if self.rule.margin < 0:
            return -1  # the domain may become the least-filled one itself
        others, least = self.table.beside(code)
        return min(UNLIMITED, self.rule.most(UNLIMITED if least is None else least, others + 1))

    def skewed(self, row: int) -> bool:
        """Return whether one more pod on the row would exceed the skew; the row has the label."""
        return self.table.count(int(self.label.codes[row])) > self.most()

    def node(self, row: int) -> bool:
        """Return whether one node passes."""
        return bool(self.label.codes[row]) and not self.skewed(row)

    def nodes(self, first: int = 0) -> BoolVector:
        return self._nodes_up_to(self.most(), first)

    def nodes_at_best(self) -> BoolVector:
        """Return whether each node would pass with as many domains as the constraint may require."""
        return self._nodes_up_to(self.rule.most(self.table.minimum(), UNLIMITED))

    def quota(self, row: int) -> int:
        code, table = int(self.label.codes[row]), self.table
        if not code or self.rule.margin < 0:
            return 0
        if not self.counted or not table.codes[row]:
            return 0 if self.skewed(row) else UNLIMITED
        most = self.most_in(code)
        return UNLIMITED if most == UNLIMITED else max(0, most + 1 - table.count(code))

    def _nodes_up_to(self, most: int, first: int = 0) -> BoolVector:
        allowed: BoolVector = self.table.counts <= most
        allowed[0] = False
        passes: BoolVector = allowed.take(self.label.codes[first : self._rows.n])
        return passes


class ApartTerm:
    """Anti-affinity by one label, of the pod itself or of pods that repel it: no such pod in the domain."""

    level = False
    only_tightens = True

    __slots__ = ("_rows", "counted", "label", "reads", "table", "topology_key")

    def __init__(self, keys: Sequence[CountKey], topology_key: str, pod: PodClass, rows: Rows) -> None:
        self.table = rows.joint_table(keys, topology_key)
        self.label = rows.label(topology_key)
        self.topology_key = topology_key
        self.counted = any(key.counts(pod, rows.facts, terminating=False) for key in keys)
        self.reads = (Counted(self.table, topology_key, self.label),)
        self._rows = rows

    def node(self, row: int) -> bool:
        """Return whether one node passes; a node without the label does."""
        return not self.table.count(int(self.label.codes[row]))

    def nodes(self, first: int = 0) -> BoolVector:
        passes: BoolVector = (self.table.counts == 0).take(self.label.codes[first : self._rows.n])
        return passes

    def quota(self, row: int) -> int:
        if not self.node(row):
            return 0
        return 1 if self.counted and self.label.codes[row] else UNLIMITED


class NearTerm:
    """All affinity terms together: each term's domain must have a pod that all terms match."""

    topology_key = ""
    level = False
    only_tightens = False
    # A pod that is let in only adds to domains that let in more of its kind already.
    counted = False

    def __init__(self, pod: PodClass, rows: Rows) -> None:
        key = MatchingPods(pod.affinity)
        column = rows.count_column(key)
        # Each label once: the pods counted are the same for all of them.
        self.reads = tuple(
            Counted(rows.table_of(column, name), name, rows.label(name))
            for name in dict.fromkeys(term.topology_key for term in pod.affinity)
        )
        self.matches_itself = key.counts(pod, rows.facts, terminating=False)
        self._rows = rows

    def is_first(self) -> bool:
        """Return whether the pod is the first of its kind."""
        return is_first_of_its_kind([read.table.total for read in self.reads], self.matches_itself)

    def node(self, row: int) -> bool:
        """Return whether one node passes."""
        codes = [int(read.label.codes[row]) for read in self.reads]
        if not all(codes):
            return False
        return self.is_first() or all(
            read.table.count(code) for read, code in zip(self.reads, codes, strict=True)
        )

    def nodes(self, first: int = 0) -> BoolVector:
        n = self._rows.n
        passes = np.ones(n - first, np.bool_)
        is_first = self.is_first()
        for read in self.reads:
            codes = read.label.codes[first:n]
            passes &= (codes != 0) if is_first else (read.table.counts > 0).take(codes)
        return passes

    def quota(self, row: int) -> int:
        return UNLIMITED if self.node(row) else 0


InterPodTerm = SpreadTerm | ApartTerm | NearTerm


class TermJudge:
    """The verdict of all of these terms: each must pass."""

    takes_in_copies = True

    def __init__(self, terms: Sequence[InterPodTerm]) -> None:
        self.terms = terms
        self.only_tightens = all(term.only_tightens for term in terms)

    def nodes(self) -> BoolVector:
        passes = self.terms[0].nodes()
        for term in self.terms[1:]:
            passes &= term.nodes()
        return passes

    def node(self, row: int) -> bool:
        for term in self.terms:  # noqa: SIM110  # the hot loop: a generator costs twice as much
            if not term.node(row):
                return False
        return True


class InterPodTerms(NamedTuple):
    """All terms of a class.

    Attributes:
        spread: Its spread constraints, in the order given.
        apart: Its own anti-affinity, and that of pods that keep it away.
        near: Its affinity.
    """

    spread: Sequence[SpreadTerm]
    apart: Sequence[ApartTerm]
    near: NearTerm | None

    @property
    def reads(self) -> list[Counted]:
        """All tables that the terms read."""
        terms = (*self.spread, *self.apart, *([self.near] if self.near else ()))
        return [read for term in terms for read in term.reads]


def inter_pod_terms(judges: Iterable[Judge]) -> InterPodTerms | None:
    """Return the terms of these judges; None if one reads anything else."""
    terms: list[InterPodTerm] = []
    for judge in judges:
        if not isinstance(judge, TermJudge):
            return None
        terms += judge.terms
    return InterPodTerms(
        [term for term in terms if isinstance(term, SpreadTerm)],
        [term for term in terms if isinstance(term, ApartTerm)],
        next((term for term in terms if isinstance(term, NearTerm)), None),
    )


def spread_terms(pod: PodClass, rows: Rows) -> list[SpreadTerm]:
    """Return the terms of the spread constraints of a class."""
    keys = tuple(sorted({one.topology_key for one in pod.spread}))
    eligible: dict[tuple[bool, bool], Eligible] = {}
    terms = []
    for rule in pod.spread:
        asked = rule.honor_affinity, rule.honor_taints
        if asked not in eligible:
            eligible[asked] = Eligible(keys, rule, pod, rows)
        terms.append(SpreadTerm(rule, pod, rows, eligible[asked]))
    return terms


def affinity_terms(pod: PodClass, rows: Rows) -> list[Sequence[NearTerm | ApartTerm]]:
    """Return a class's affinity and anti-affinity terms, and the terms by which pods of the snapshot repel it."""
    guards: dict[str, list[CountKey]] = {}
    for key in rows.guards_of(pod):
        guards.setdefault(key.term.topology_key, []).append(key)
    return [
        [NearTerm(pod, rows)] if pod.affinity else [],
        [ApartTerm([MatchingPods((term,))], term.topology_key, pod, rows) for term in pod.anti_affinity],
        [ApartTerm(keys, name, pod, rows) for name, keys in guards.items()],
    ]


class Eligible:
    """The nodes eligible for the constraints of a class, computed once for all of them.

    Equal ones mean the same nodes. Holds as the judges do that it is made for.
    """

    __slots__ = ("_hash", "_keys", "_last", "_meaning", "_nodes", "_pod", "_rows", "_rule")

    def __init__(self, keys: tuple[str, ...], rule: SpreadConstraint, pod: PodClass, rows: Rows) -> None:
        self._keys = keys
        self._meaning = (
            keys,
            pod.selection if rule.honor_affinity else None,
            pod.tolerations if rule.honor_taints else None,
        )
        self._hash = hash(self._meaning)
        # The rows hold what is made of them by this: a strong reference would be a cycle.
        self._rule, self._pod, self._rows = rule, pod, ref(rows)
        self._last: Node | None = None
        self._nodes: BoolVector = np.zeros(0, np.bool_)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Eligible) and self._meaning == other._meaning)

    def __hash__(self) -> int:
        return self._hash

    def __call__(self) -> BoolVector:
        """Return whether each node takes part, as nodes are now."""
        rows = self._rows()
        assert rows is not None, "only its rows and their judges ask"
        last = rows.nodes[rows.n - 1] if rows.n else None
        # Judges live until a node changes, so that others have come where the last is another.
        if last is not self._last or len(self._nodes) != rows.n:
            self._last, self._nodes = last, self.among(rows)
        return self._nodes

    def among(self, rows: Rows) -> BoolVector:
        """Return whether each of these nodes has all of the labels and is eligible; a new vector."""
        nodes = np.ones(rows.n, np.bool_)
        for key in self._keys:
            nodes &= rows.label(key).codes[: rows.n] != 0
        for plugin, asked in ((_AFFINITY, self._rule.honor_affinity), (_TAINTS, self._rule.honor_taints)):
            passes = plugin.passes(self._pod, rows) if asked else None
            if passes is not None:
                nodes &= passes
        return nodes
