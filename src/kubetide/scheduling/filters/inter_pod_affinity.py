"""InterPodAffinity: pods that must stand near others, or must not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.scheduling.columns.counting import CountKey, MatchingPods
from kubetide.scheduling.columns.rows import BoolVector, Rows
from kubetide.scheduling.filters.base import UNLIMITED, Term
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import UNSCHEDULABLE, Refusal

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class ApartTerm:
    """Anti-affinity by one label, of the pod itself or of pods that keep it away: no such pod in the domain."""

    level = False

    __slots__ = ("_rows", "counted", "label", "table", "topology_key")

    def __init__(self, keys: Sequence[CountKey], topology_key: str, pod: PodClass, rows: Rows) -> None:
        self.table = rows.joint_table(keys, topology_key)
        self.label = rows.label(topology_key)
        self.topology_key = topology_key
        self.counted = any(key.counts(pod, rows.facts, terminating=False) for key in keys)
        self._rows = rows

    def node(self, row: int) -> bool:
        """Return whether one node passes; without the label it does."""
        return not self.table.count(int(self.label.codes[row]))

    def nodes(self, first: int = 0) -> BoolVector:
        passes: BoolVector = (self.table.counts == 0).take(self.label.codes[first : self._rows.n])
        return passes

    def quota(self, row: int) -> int:
        if not self.node(row):
            return 0
        return 1 if self.counted and self.label.codes[row] else UNLIMITED


class NearTerm:
    """All terms of affinity together: a pod that they all mean is in each term's domain."""

    topology_key = ""
    level = False
    # A pod that is let in only adds to domains that let in more of its kind already.
    counted = False

    def __init__(self, pod: PodClass, rows: Rows) -> None:
        key = MatchingPods(pod.affinity)
        # Each label once: the pods counted are the same for all of them.
        self.topology_keys = tuple(dict.fromkeys(term.topology_key for term in pod.affinity))
        column = rows.count_column(key)
        self.tables = [rows.table_of(column, name) for name in self.topology_keys]
        self.labels = [rows.label(name) for name in self.topology_keys]
        self.is_one_of_them = key.counts(pod, rows.facts, terminating=False)
        self._rows = rows

    def is_first(self) -> bool:
        """Return whether no pod is there to stand near to, and the pod itself would be one: any domain will do."""
        return self.is_one_of_them and not any(table.total for table in self.tables)

    def node(self, row: int) -> bool:
        """Return whether one node passes."""
        codes = [int(label.codes[row]) for label in self.labels]
        if not all(codes):
            return False
        return self.is_first() or all(
            table.count(code) for table, code in zip(self.tables, codes, strict=True)
        )

    def nodes(self, first: int = 0) -> BoolVector:
        n = self._rows.n
        passes = np.ones(n - first, np.bool_)
        is_first = self.is_first()
        for table, label in zip(self.tables, self.labels, strict=True):
            codes = label.codes[first:n]
            passes &= (codes != 0) if is_first else (table.counts > 0).take(codes)
        return passes

    def quota(self, row: int) -> int:
        return UNLIMITED if self.node(row) else 0


class AffinityJudge:
    """All terms that bear on a class: its own, and those of pods that keep it away."""

    takes_in_copies = True

    def __init__(self, pod: PodClass, rows: Rows) -> None:
        self.near = NearTerm(pod, rows) if pod.affinity else None
        self.apart = [
            ApartTerm([MatchingPods((term,))], term.topology_key, pod, rows) for term in pod.anti_affinity
        ]
        guards: dict[str, list[CountKey]] = {}
        for key in rows.guards_of(pod):
            guards.setdefault(key.term.topology_key, []).append(key)
        self.guards = [ApartTerm(keys, name, pod, rows) for name, keys in guards.items()]
        self.only_tightens = self.near is None
        self.terms: list[Term] = [*([self.near] if self.near else ()), *self.apart, *self.guards]

    def nodes(self) -> BoolVector:
        passes = self.terms[0].nodes()
        for term in self.terms[1:]:
            passes &= term.nodes()
        return passes

    def node(self, row: int) -> bool:
        for term in self.apart:
            if not term.node(row):
                return False
        for term in self.guards:
            if not term.node(row):
                return False
        return self.near is None or self.near.node(row)


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
        judge = AffinityJudge(pod, rows)
        return judge if judge.terms else None

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        judge = AffinityJudge(pod, rows)
        if judge.near is not None and not judge.near.node(row):
            detail = f"no pod to stand near to in its {', '.join(judge.near.topology_keys)}"
            return Refusal(plugin=self.name, reasons=(AFFINITY,), detail=detail)
        for terms, reason, who in (
            (judge.apart, ANTI_AFFINITY, "a pod to keep away from"),
            (judge.guards, EXISTING_ANTI_AFFINITY, "a pod that keeps it away"),
        ):
            for term in terms:
                if not term.node(row):
                    detail = f"{who} is in its {term.topology_key}"
                    return Refusal(plugin=self.name, reasons=(reason,), code=UNSCHEDULABLE, detail=detail)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        judge = AffinityJudge(pod, rows)
        near: list[Term] = [judge.near] if judge.near else []
        left = np.ones(rows.n, np.bool_)
        found: list[tuple[str, BoolVector]] = []
        for terms, reason in (
            (near, AFFINITY),
            (judge.apart, ANTI_AFFINITY),
            (judge.guards, EXISTING_ANTI_AFFINITY),
        ):
            passes = np.ones(rows.n, np.bool_)
            for term in terms:
                passes &= term.nodes()
            found.append((reason, left & ~passes))
            left &= passes
        return found
