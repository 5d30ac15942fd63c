"""PodTopologySpread: pods of a kind stand on the domains of a label in about equal numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from kubetide.objects.node import Node
from kubetide.scheduling.columns.columns import LabelColumn
from kubetide.scheduling.columns.counting import DomainTable, SpreadPods
from kubetide.scheduling.columns.rows import BoolVector, Rows
from kubetide.scheduling.filters.base import UNLIMITED
from kubetide.scheduling.filters.node_affinity import NodeAffinity
from kubetide.scheduling.filters.taint_toleration import TaintToleration
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.terms import SpreadConstraint
from kubetide.scheduling.refusal import ERROR, UNSCHEDULABLE, Refusal

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = f"{REASON} (missing required label)"

_AFFINITY = NodeAffinity()
_TAINTS = TaintToleration()


class SpreadTerm:
    """One constraint with what it reads.

    Attributes:
        counted: Whether pods of the class are among those that are counted.
        eligibility: Equal where the same nodes take part.
    """

    level = True

    __slots__ = ("_rows", "counted", "eligibility", "label", "rule", "table")

    def __init__(
        self,
        rule: SpreadConstraint,
        table: DomainTable,
        label: LabelColumn,
        rows: Rows,
        *,
        eligibility: Hashable,
        counted: bool,
    ) -> None:
        self.rule = rule
        self.eligibility = eligibility
        self.table = table
        self.label = label
        self.counted = counted
        self._rows = rows

    @property
    def topology_key(self) -> str:
        return self.rule.topology_key

    def most(self) -> int:
        """Return how many pods a domain may have for one more to be let in."""
        table, rule = self.table, self.rule
        least = table.minimum() if table.domains >= rule.min_domains else 0
        return rule.max_skew + least - rule.self_match

    def skewed(self, row: int) -> bool:
        """Return whether one more pod on the row would be too many; the row has the label."""
        return self.table.count(int(self.label.codes[row])) > self.most()

    def node(self, row: int) -> bool:
        """Return whether one node passes."""
        return bool(self.label.codes[row]) and not self.skewed(row)

    def nodes(self, first: int = 0) -> BoolVector:
        allowed: BoolVector = self.table.counts <= self.most()
        allowed[0] = False
        passes: BoolVector = allowed.take(self.label.codes[first : self._rows.n])
        return passes

    def quota(self, row: int) -> int:
        code, table, rule = int(self.label.codes[row]), self.table, self.rule
        if not code or rule.max_skew < rule.self_match:
            return 0
        if not self.counted or not table.codes[row]:
            return 0 if self.skewed(row) else UNLIMITED
        if table.domains < rule.min_domains:
            return max(0, rule.max_skew - table.count(code))
        others = table.minimum_beside(code)
        return UNLIMITED if others is None else max(0, rule.max_skew + others - table.count(code))


class SpreadJudge:
    """All constraints of a class."""

    only_tightens = False
    takes_in_copies = True

    def __init__(self, terms: list[SpreadTerm]) -> None:
        self.terms = terms

    def nodes(self) -> BoolVector:
        passes = self.terms[0].nodes()
        for term in self.terms[1:]:
            passes &= term.nodes()
        return passes

    def node(self, row: int) -> bool:
        return all(term.node(row) for term in self.terms)


class PodTopologySpread:
    """Source: kube-scheduler v1.36 PodTopologySpread, DoNotSchedule constraints.

    A node takes part in a constraint when it has the labels of all constraints and the policies let
    it in; nodes that take no part are judged all the same.
    """

    name = "PodTopologySpread"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:  # noqa: ARG002  # the protocol's form
        if not pod.spread_error:
            return None
        message = (
            f"get constraints from pod: obtaining pod's hard topology spread constraints: {pod.spread_error}"
        )
        reason = f'running PreFilter plugin "{self.name}": {message}'
        return Refusal(plugin=self.name, reasons=(reason,), code=ERROR, phase="PreFilter", detail=message)

    def judge(self, pod: PodClass, rows: Rows) -> SpreadJudge | None:
        if not pod.spread:
            return None
        return SpreadJudge(_terms(pod, rows))

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        judge = self.judge(pod, rows)
        for one in judge.terms if judge else ():
            key = one.rule.topology_key
            if not one.label.codes[row]:
                return Refusal(
                    plugin=self.name, reasons=(MISSING_LABEL,), detail=f"the node has no label {key}"
                )
            if one.skewed(row):
                found = one.table.count(int(one.label.codes[row]))
                detail = f"{found} pods in its {key}, at most {one.most()} for one more (maxSkew {one.rule.max_skew})"
                return Refusal(plugin=self.name, reasons=(REASON,), code=UNSCHEDULABLE, detail=detail)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        judge = self.judge(pod, rows)
        if judge is None:
            return []
        missing = np.zeros(rows.n, np.bool_)
        skewed = np.zeros(rows.n, np.bool_)
        for one in judge.terms:
            codes = one.label.codes[: rows.n]
            # The first constraint that fails gives the reason.
            still = ~(missing | skewed)
            missing |= still & (codes == 0)
            skewed |= still & (codes != 0) & (one.table.counts > one.most()).take(codes)
        return [(REASON, skewed), (MISSING_LABEL, missing)]


def takes_part(keys: Iterable[str], rule: SpreadConstraint, pod: PodClass, rows: Rows) -> BoolVector:
    """Return whether each node has all of the labels and takes part in a constraint of the class; a fresh vector."""
    nodes = np.ones(rows.n, np.bool_)
    for key in keys:
        nodes &= rows.label(key).codes[: rows.n] != 0
    for plugin, asked in ((_AFFINITY, rule.honor_affinity), (_TAINTS, rule.honor_taints)):
        passes = plugin.passes(pod, rows) if asked else None
        if passes is not None:
            nodes &= passes
    return nodes


class Eligible:
    """The nodes that take part in the constraints of a class, worked out once for all of them.

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
        self._rule, self._pod, self._rows = rule, pod, rows
        self._last: Node | None = None
        self._nodes: BoolVector = np.zeros(0, np.bool_)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Eligible) and self._meaning == other._meaning)

    def __hash__(self) -> int:
        return self._hash

    def __call__(self) -> BoolVector:
        """Return whether each node takes part, as nodes are now."""
        rows = self._rows
        last = rows.nodes[rows.n - 1] if rows.n else None
        # Judges live until a node changes, so that others have come where the last is another.
        if last is not self._last or len(self._nodes) != rows.n:
            self._last, self._nodes = last, takes_part(self._keys, self._rule, self._pod, rows)
        return self._nodes


def _terms(pod: PodClass, rows: Rows) -> list[SpreadTerm]:
    keys = tuple(sorted({one.topology_key for one in pod.spread}))
    eligible: dict[tuple[bool, bool], Eligible] = {}
    terms = []
    for rule in pod.spread:
        asked = rule.honor_affinity, rule.honor_taints
        if asked not in eligible:
            eligible[asked] = Eligible(keys, rule, pod, rows)
        terms.append(_term(rule, pod, rows, eligible[asked]))
    return terms


def _term(rule: SpreadConstraint, pod: PodClass, rows: Rows, eligible: Eligible) -> SpreadTerm:
    key = SpreadPods(pod.namespace, rule.selector)
    table = rows.table(key, rule.topology_key, eligible, eligible, copies_differ=pod.names_nodes)
    counted = key.counts(pod, rows.facts, terminating=False)
    return SpreadTerm(rule, table, rows.label(rule.topology_key), rows, eligibility=eligible, counted=counted)
