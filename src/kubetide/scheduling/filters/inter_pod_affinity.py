"""InterPodAffinity: pods that must stand near others, or must not."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.counting import DomainTable, GuardingPods, MatchingPods
from kubetide.scheduling.pod_class import PodClass
from kubetide.scheduling.pod_terms import PodTerm
from kubetide.scheduling.refusal import UNSCHEDULABLE, Refusal
from kubetide.scheduling.rows import BoolVector, LabelColumn, Rows

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class _Domains:
    """One term: where the pods are that it is about."""

    __slots__ = ("label", "table", "topology_key")

    def __init__(self, table: DomainTable, label: LabelColumn, topology_key: str) -> None:
        self.table = table
        self.label = label
        self.topology_key = topology_key

    def some(self, row: int) -> bool:
        """Whether any such pod is in the row's domain; False without the label."""
        return self.table.count(int(self.label.codes[row])) > 0

    def some_of(self, n: int) -> BoolVector:
        """``some`` for the first n rows."""
        there: BoolVector = (self.table.counts > 0).take(self.label.codes[:n])
        return there


class AffinityJudge:
    """All terms that bear on a class: its own, and those of pods that keep it away."""

    def __init__(self, pod: PodClass, rows: Rows) -> None:
        self._n = rows.n
        near = MatchingPods(pod.affinity)
        self.near = [_domains(rows, near, term) for term in pod.affinity]
        self.apart = [_domains(rows, MatchingPods((term,)), term) for term in pod.anti_affinity]
        self.guards = [
            _domains(rows, key, key.term)
            for key in rows.guards
            if key.term.guards(pod.namespace, pod.labels, rows.facts.namespaces)
        ]
        self._is_own_company = bool(pod.affinity) and near.counts(pod, rows.facts, terminating=False)
        self.only_tightens = not pod.affinity

    def __bool__(self) -> bool:
        return bool(self.near or self.apart or self.guards)

    def first_of_all(self) -> bool:
        """Whether no pod is there to stand near to, and the pod itself would be one: then any domain will do."""
        return self._is_own_company and not any(one.table.total for one in self.near)

    def is_near(self, row: int) -> bool:
        """Whether the affinity terms hold on one node."""
        if not all(one.label.codes[row] for one in self.near):
            return False
        return all(one.some(row) for one in self.near) or self.first_of_all()

    def near_nodes(self) -> BoolVector:
        """``is_near`` for all nodes."""
        passes = np.ones(self._n, np.bool_)
        first = bool(self.near) and self.first_of_all()
        for one in self.near:
            passes &= (one.label.codes[: self._n] != 0) if first else one.some_of(self._n)
        return passes

    def nodes(self) -> BoolVector:
        passes = self.near_nodes()
        for one in (*self.apart, *self.guards):
            passes &= ~one.some_of(self._n)
        return passes

    def node(self, row: int) -> bool:
        for one in self.apart:
            if one.some(row):
                return False
        for one in self.guards:
            if one.some(row):
                return False
        return not self.near or self.is_near(row)


class InterPodAffinity:
    """Source: kube-scheduler v1.36 InterPodAffinity, required terms.

    An existing pod counts for affinity only when all terms mean it. A node without the label of an
    anti-affinity term passes.
    """

    name = "InterPodAffinity"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:  # noqa: ARG002  # the protocol's form
        if not pod.terms_error:
            return None
        reason = f"parsing pod: {pod.terms_error}"
        return Refusal(plugin=self.name, reasons=(reason,), phase="PreFilter", detail=pod.terms_error)

    def judge(self, pod: PodClass, rows: Rows) -> AffinityJudge | None:
        return AffinityJudge(pod, rows) or None

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        judge = self.judge(pod, rows)
        if judge is None:
            return None
        if judge.near and not judge.is_near(row):
            keys = ", ".join(one.topology_key for one in judge.near)
            detail = f"no pod to stand near to in its {keys}"
            return Refusal(plugin=self.name, reasons=(AFFINITY,), detail=detail)
        for found, reason, who in (
            (judge.apart, ANTI_AFFINITY, "a pod to keep away from"),
            (judge.guards, EXISTING_ANTI_AFFINITY, "a pod that keeps it away"),
        ):
            for one in found:
                if one.some(row):
                    detail = f"{who} is in its {one.topology_key}"
                    return Refusal(plugin=self.name, reasons=(reason,), code=UNSCHEDULABLE, detail=detail)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        judge = self.judge(pod, rows)
        if judge is None:
            return []
        left = judge.near_nodes()
        found = [(AFFINITY, ~left)]
        for terms, reason in ((judge.apart, ANTI_AFFINITY), (judge.guards, EXISTING_ANTI_AFFINITY)):
            failed = np.zeros(rows.n, np.bool_)
            for one in terms:
                failed |= one.some_of(rows.n)
            found.append((reason, left & failed))
            left &= ~failed
        return found


def _domains(rows: Rows, key: MatchingPods | GuardingPods, term: PodTerm) -> _Domains:
    return _Domains(rows.table(key, term.topology_key), rows.label(term.topology_key), term.topology_key)
