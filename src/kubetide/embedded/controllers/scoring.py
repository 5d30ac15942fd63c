"""Which of the nodes that take a pod is the best: pure, over the snapshot's columns."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.rows import Int64Vector

# A pod that requests nothing is scored as if it asked for this (kube-scheduler's non-zero defaults).
_SCORED_REQUESTS = {"cpu": 100, "memory": 200 << 20}
_MOST = 100


def best_node(snapshot: Snapshot, pod_class: PodClass) -> str | None:
    """Gives the node with the highest score among those that take the class; of equals, the first by name.

    The score is LeastAllocated plus BalancedAllocation over cpu and memory, each of weight 1, as in
    kube-scheduler's default profile (1.36). What kube-scheduler adds for preferred affinity,
    PreferNoSchedule taints, images and spreading is left out, and so are its non-zero defaults for
    the pods that are on the nodes already. Where kube-scheduler draws among equals, the name decides.
    """
    feasible = np.flatnonzero(snapshot.feasible(pod_class))
    if not len(feasible):
        return None
    names = snapshot.node_names
    if len(feasible) == 1:
        return str(names[int(feasible[0])])
    scores = _scores(snapshot, pod_class, feasible)
    best = feasible[scores == scores.max()]
    first: str = min(names[row] for row in best.tolist())
    return first


def _scores(snapshot: Snapshot, pod_class: PodClass, rows: Int64Vector) -> Int64Vector:
    # One line a resource; of one that no node offers it stays at zero.
    offered, left = np.zeros((2, len(_SCORED_REQUESTS), len(rows)), np.int64)
    for line, (resource, default) in enumerate(_SCORED_REQUESTS.items()):
        column = snapshot.column(resource)
        if column is not None:
            offered[line], left[line] = column[0][rows], column[1][rows]
        left[line] -= pod_class.requests.get(resource, 0) or default
    divisor = np.maximum(offered, 1)
    least = np.where((left >= 0) & (offered > 0), left * _MOST // divisor, 0).sum(axis=0)
    shares = np.minimum((offered - left) / divisor, 1.0)
    balanced = ((1 - np.abs(shares[0] - shares[1]) / 2) * _MOST).astype(np.int64)
    scores: Int64Vector = least // len(_SCORED_REQUESTS) + balanced
    return scores
