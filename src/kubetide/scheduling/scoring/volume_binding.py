"""VolumeBinding: prefers nodes whose volumes or storage for the pod's claims would be less full."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.scheduling.filters.binding_rules import (
    capacity_for,
    claim_size,
    match_static,
    sort_claims,
    volume_size,
)
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.scoring.base import MOST, Incoming, Scored
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.scheduling.snapshot.volumes import SELECTED_NODE, Volumes
from kubetide.units.vectors import Int64Vector


class VolumeBinding:
    """Scores only where the gate StorageCapacityScoring is on; pods without claims that wait for a node get 0.

    Source: kube-scheduler v1.36 and v1.37 VolumeBinding, score phase.
    """

    name = "VolumeBinding"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:
        return cluster.facts.storage_capacity_scoring and bool(pod.pod_class.claims)

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        volumes = cluster.facts.volumes
        if not cluster.facts.storage_capacity_scoring:
            return None
        if volumes is None or not pod.pod_class.claims:
            return Scored.as_they_are(np.zeros(len(feasible), np.int64))
        nodes = cluster.rows.nodes
        scores = [_score(pod.pod_class, volumes, labels_of(nodes[row])) for row in feasible.tolist()]
        return Scored.as_they_are(np.array(scores, np.int64))


def _score(pod: PodClass, volumes: Volumes, labels: Mapping[str, str]) -> int:
    waiting = sort_claims(pod, volumes).waiting
    to_make = [one for one in waiting if SELECTED_NODE in (one.metadata.annotations or {})]
    to_find = [one for one in waiting if SELECTED_NODE not in (one.metadata.annotations or {})]
    matches = match_static(to_find, volumes, labels)
    of_class: dict[str, tuple[int, int]] = {}
    for claim, volume in matches.found:
        name = volumes.class_of(claim)
        requested, capacity = of_class.get(name, (0, 0))
        of_class[name] = requested + claim_size(claim), capacity + volume_size(volume)
    if not matches.found:
        for claim in (*to_make, *matches.left):
            limit = capacity_for(claim, volumes, labels)
            if limit is not None:
                name = volumes.class_of(claim)
                of_class[name] = of_class.get(name, (0, 0))[0] + claim_size(claim), limit
    if not of_class:
        return 0
    total = sum(_free(requested, capacity) for requested, capacity in of_class.values())
    # Halves go away from 0, as Go rounds.
    return int(total / len(of_class) + 0.5)


def _free(requested: int, capacity: int) -> int:
    return 0 if capacity == 0 or requested > capacity else MOST - requested * MOST // capacity
