"""InterPodAffinity: preferred affinity and anti-affinity of the pod, and of existing pods that match it."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.columns import LabelColumn
from kubetide.scheduling.columns.counting import CountKey, DomainTable, MatchingPods
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.scoring.base import MOST, Incoming, Scored
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector

_Tables = list[tuple[LabelColumn, list[tuple[int, DomainTable]]]]


class InterPodAffinity:
    """Sums, over the pods in each domain of a node, the weights of terms between them and the pod.

    The pod's own preferred terms count, those of pods on nodes, and 1 for each required affinity
    term of a pod on a node that means the pod.

    Source: kube-scheduler v1.36 InterPodAffinity, score phase, hardPodAffinityWeight 1.
    """

    name = "InterPodAffinity"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:
        return bool(pod.pod_class.preferences.pods or cluster.rows.asks)

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        if not self.differs(pod, cluster):
            return None
        key = (self.name, pod.pod_class)
        found: _Tables = cluster.of_counts(key, lambda: _tables(pod.pod_class, cluster.rows))
        total: Int64Vector | None = None
        for label, tables in found:
            asked = [(weight, table) for weight, table in tables if table.total]
            if not asked:
                continue
            of_domain = np.zeros(len(label.code_of) + 1, np.int64)
            for weight, table in asked:
                counts = table.counts
                of_domain[: len(counts)] += weight * counts
            of_domain[0] = 0
            scores = of_domain.take(label.codes[feasible])
            total = scores if total is None else total + scores
        return None if total is None else Scored(total, _normalized(total))


def _normalized(raw: Int64Vector) -> Int64Vector:
    """Return where between the least and the largest each is, in percent, truncated; 0 where all are equal."""
    least, largest = int(raw.min()), int(raw.max())
    if least == largest:
        return np.zeros(len(raw), np.int64)
    scores: Int64Vector = (float(MOST) * ((raw - least) / (largest - least))).astype(np.int64)
    return scores


def _tables(pod: PodClass, rows: Rows) -> _Tables:
    """Return, by topology key, the weighted counts of the pods that the pod means and of those that mean it."""
    meant: list[tuple[str, int, CountKey]] = [
        (term.topology_key, weight, MatchingPods((term,))) for term, weight in pod.preferences.pods
    ]
    meant += [(key.term.topology_key, key.weight, key) for key in rows.asks_of(pod)]
    found: dict[str, list[tuple[int, DomainTable]]] = {}
    for topology_key, weight, key in meant:
        found.setdefault(topology_key, []).append((weight, rows.table(key, topology_key)))
    return [(rows.label(topology_key), tables) for topology_key, tables in found.items()]
