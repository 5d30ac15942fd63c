"""InterPodAffinity: pods that must share a domain with others, or must not."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.inter_pod_terms import TermJudge, affinity_terms
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import UNRESOLVABLE, UNSCHEDULABLE, Refusal
from kubetide.units.vectors import BoolVector

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

_SAID = (
    (AFFINITY, UNRESOLVABLE, "no pod to stand near to in its"),
    (ANTI_AFFINITY, UNSCHEDULABLE, "a pod to keep away from is in its"),
    (EXISTING_ANTI_AFFINITY, UNSCHEDULABLE, "a pod that keeps it away is in its"),
)
"""What is said where a term of these fails, in the order of ``affinity_terms``."""


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

    def judge(self, pod: PodClass, rows: Rows) -> TermJudge | None:
        near, apart, guards = affinity_terms(pod, rows)
        return TermJudge([*apart, *guards, *near]) if near or apart or guards else None

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        for terms, (reason, code, detail) in zip(affinity_terms(pod, rows), _SAID, strict=True):
            for term in terms:
                if not term.node(row):
                    keys = ", ".join(read.topology_key for read in term.reads)
                    return Refusal(plugin=self.name, reasons=(reason,), code=code, detail=f"{detail} {keys}")
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        left = np.ones(rows.n, np.bool_)
        found: list[tuple[str, BoolVector]] = []
        for terms, (reason, _, _) in zip(affinity_terms(pod, rows), _SAID, strict=True):
            passes = np.ones(rows.n, np.bool_)
            for term in terms:
                passes &= term.nodes()
            found.append((reason, left & ~passes))
            left &= passes
        return found
