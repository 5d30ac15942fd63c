"""NodeAffinity: the summed weights of the preferred terms that a node meets."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.node_affinity import term_holds
from kubetide.scheduling.pods.preferences import PreferredNodes
from kubetide.scheduling.scoring.base import Incoming, Scored, ScoreError, scaled
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector


class NodeAffinity:
    """Source: kube-scheduler v1.36 NodeAffinity, score phase."""

    name = "NodeAffinity"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:  # noqa: ARG002  # the protocol's form
        return pod.pod_class.preferences.nodes is not None

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        preferred = pod.pod_class.preferences.nodes
        if preferred is None:
            return None
        if preferred.error:
            raise ScoreError(self.name, preferred.error)
        if not preferred.terms:
            return scaled(np.zeros(len(feasible), np.int64))
        key = (self.name, pod.pod_class)
        weights: Int64Vector = cluster.of_nodes(key, lambda: _weights(preferred, cluster.rows))
        return scaled(weights[feasible])


def _weights(preferred: PreferredNodes, rows: Rows) -> Int64Vector:
    total = np.zeros(rows.n, np.int64)
    for term, weight in preferred.terms:
        total += weight * term_holds(term, rows)
    return total
