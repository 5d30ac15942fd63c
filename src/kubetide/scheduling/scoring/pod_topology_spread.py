"""PodTopologySpread: prefers nodes whose domains have fewer matching pods."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubetide.scheduling.columns.columns import CodeVector, LabelColumn
from kubetide.scheduling.columns.counting import CountColumn, DomainTable, SpreadPods
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.inter_pod_terms import Eligible
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.terms import SpreadConstraint
from kubetide.scheduling.scoring.base import MOST, Incoming, Scored, ScoreError
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.selectors import Selector
from kubetide.units.vectors import BoolVector, Int64Vector

_ZONE = "topology.kubernetes.io/zone"
_SYSTEM = ((HOSTNAME, 3), (_ZONE, 5))
"""Topology keys and maxSkew of the constraints that the system adds."""


class _Term(NamedTuple):
    """One constraint; of hostnames the pods on each row count, else those of each domain.

    Attributes:
        everywhere: Whether all nodes have the label.
    """

    max_skew: int
    label: LabelColumn
    column: CountColumn | None
    table: DomainTable | None
    everywhere: bool


class PodTopologySpread:
    """Source: kube-scheduler v1.36 PodTopologySpread, score phase, system defaults."""

    name = "PodTopologySpread"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:  # noqa: ARG002  # the protocol's form
        preferences = pod.pod_class.preferences
        if preferences.spread or preferences.spread_error:
            return True
        return pod.spread is not None and not preferences.is_spread

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        preferences = pod.pod_class.preferences
        if preferences.spread_error:
            detail = f"obtaining pod's soft topology spread constraints: {preferences.spread_error}"
            raise ScoreError(self.name, f"calculating preScoreState: {detail}")
        if not self.differs(pod, cluster):
            return None
        terms = self._terms(pod, cluster)
        counted = _taking_part(terms, feasible) if preferences.spread else None
        taking_part = feasible if counted is None else feasible[counted]
        scores = np.zeros(len(feasible), np.float64)
        for term in terms:
            if term.column is not None:
                domains = len(taking_part)
                numbers = term.column.vector(cluster.rows.n).take(feasible)
            else:
                assert term.table is not None
                codes = term.label.codes.take(feasible)
                present = codes if counted is None else codes[counted]
                domains = int(np.count_nonzero(np.bincount(present)))
                numbers = _in_domain(term.table, codes)
            part = numbers * math.log(domains + 2) + float(term.max_skew - 1)
            # A node without the label gets nothing for it.
            scores += part if term.everywhere else np.where(term.label.codes[feasible] != 0, part, 0.0)
        scores = scores if counted is None else np.where(counted, scores, 0.0)
        raw = _rounded(scores, negative=any(term.max_skew < 1 for term in terms))
        return Scored(raw, _normalized(raw, counted))

    def _terms(self, pod: Incoming, cluster: ScoredSnapshot) -> list[_Term]:
        key = (self.name, pod.pod_class, pod.spread)
        terms: list[_Term] = cluster.of_counts(key, lambda: _make_terms(pod, cluster.rows))
        return terms


def _normalized(raw: Int64Vector, counted: BoolVector | None) -> Int64Vector:
    """Return 100 x (largest + least - raw) / largest over the nodes that take part; 0 for the others."""
    left = raw if counted is None else raw[counted]
    if not len(left):
        return np.zeros(len(raw), np.int64)
    least, largest = int(left.min()), int(left.max())
    above = MOST * (largest + least - raw)
    if largest == 0:
        scores = np.full(len(raw), MOST, np.int64)
    elif least >= 0:
        scores = above // largest
    else:
        # Only a maxSkew that the API server refuses leads here. Go divides towards 0.
        scores = np.sign(above) * np.sign(largest) * (np.abs(above) // abs(largest))
    return scores if counted is None else np.where(counted, scores, 0)


def _taking_part(terms: list[_Term], feasible: Int64Vector) -> BoolVector | None:
    """Return whether each row has the labels of all constraints; None when all have."""
    has_all = np.ones(len(feasible), np.bool_)
    for term in terms:
        if not term.everywhere:
            has_all &= term.label.codes[feasible] != 0
    return None if has_all.all() else has_all


def _in_domain(table: DomainTable, codes: CodeVector) -> Int64Vector:
    counts = table.counts
    found: Int64Vector = counts.take(codes, mode="clip") if len(counts) else np.zeros(len(codes), np.int64)
    return found


def _make_terms(pod: Incoming, rows: Rows) -> list[_Term]:
    constraints = pod.pod_class.preferences.spread
    if not constraints and pod.spread is not None:
        constraints = tuple(_system(key, max_skew, pod.spread) for key, max_skew in _SYSTEM)
        keys: tuple[str, ...] = ()
    else:
        keys = tuple(sorted({one.topology_key for one in constraints}))
    terms = []
    for rule in constraints:
        label, counted = rows.label(rule.topology_key), SpreadPods(pod.pod_class.namespace, rule.selector)
        everywhere = bool(label.codes[: rows.n].all())
        if rule.topology_key == HOSTNAME:
            terms.append(_Term(rule.max_skew, label, rows.count_column(counted), None, everywhere))
            continue
        eligible = Eligible(keys, rule, pod.pod_class, rows)
        copies_differ = pod.pod_class.names_nodes
        table = rows.table(counted, rule.topology_key, eligible, eligible, copies_differ=copies_differ)
        terms.append(_Term(rule.max_skew, label, None, table, everywhere))
    return terms


def _system(topology_key: str, max_skew: int, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=topology_key,
        max_skew=max_skew,
        min_domains=1,
        selector=selector,
        self_match=0,
        honor_affinity=True,
        honor_taints=False,
    )


def _rounded(scores: npt.NDArray[np.float64], *, negative: bool) -> Int64Vector:
    """Round half away from 0, as Go does; ``negative`` says whether there may be negative scores."""
    whole = np.trunc(scores)
    rest = scores - whole
    rounded = whole + (rest >= 0.5)
    if negative:
        rounded -= rest <= -0.5
    return rounded.astype(np.int64)
