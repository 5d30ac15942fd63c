"""DynamicResources: prefers nodes whose devices serve earlier alternatives."""

from __future__ import annotations

import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.resource import ResourceClaim
from kubetide.scheduling.devices.claims import Problem, allocate_on, find_claims
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.devices.problems import ClaimError, NodeError
from kubetide.scheduling.scoring.base import Incoming, Scored, scaled
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector

_MOST_ALTERNATIVES = 8
"""So many may a request name; the first of them scores as much."""


class DynamicResources:
    """Source: kube-scheduler v1.36 DynamicResources, score phase (DRAPrioritizedList)."""

    name = "DynamicResources"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:
        return pod.pod_class.devices is not None and cluster.rows.devices is not None

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        ledger, use = cluster.rows.devices, pod.pod_class.devices
        nothing = scaled(np.zeros(len(feasible), np.int64))
        if ledger is None or use is None:
            return nothing
        found = find_claims(use, ledger)
        if isinstance(found, Problem):
            return nothing
        claims = [claim for key, claim in found if ledger.held(key) is None]
        if not any(_alternatives(claim) for claim in claims):
            return nothing
        nodes = cluster.rows.nodes
        return scaled(np.array([_score(nodes[row], claims, ledger) for row in feasible.tolist()], np.int64))


def _alternatives(claim: ResourceClaim) -> dict[str, int]:
    """Return by name, with that of the request before a slash, the place of each alternative."""
    return {
        f"{request.name}/{one.name}": at
        for request in claim.spec.devices.requests or ()
        for at, one in enumerate(request.first_available or ())
    }


def _score(node: Node, claims: list[ResourceClaim], ledger: Ledger) -> int:
    try:
        given = allocate_on(node, ledger.pools_of(node), claims, ledger)
    except (ClaimError, NodeError):
        return 0
    score = 0
    for claim, devices in zip(claims, given or (), strict=False):
        places = _alternatives(claim)
        taken = dict.fromkeys(one.request for one in devices)
        score += sum(_MOST_ALTERNATIVES - places[name] for name in taken if name in places)
    return score
