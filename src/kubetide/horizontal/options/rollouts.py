"""Rollouts (annotation ``count-old-during-rollout``).

New pods warm caches and compile; what they use in that time says little of the load. While a Deployment has pods
of older ReplicaSets, those of the newest count as pods without a sample: as idle when the ratio asks for more, as
using all they requested when it asks for less. So they may damp a change, and never drive one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.objects.meta import controller_of
from kubetide.objects.workload import ReplicaSet

REVISION = "deployment.kubernetes.io/revision"
"""The annotation in which the Deployment controller numbers its ReplicaSets."""


def starting_set(replica_sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """Return the newest ReplicaSet of a Deployment while an older one still has pods; else None.

    The newest is that of the highest revision, which the Deployment controller writes in an annotation.
    """
    if not replica_sets:
        return None
    newest = max(replica_sets, key=lambda one: (_revision(one), one.metadata.name))
    older = (one for one in replica_sets if one is not newest)
    return newest if any(one.status.replicas for one in older) else None


def belong_to(uid: str, replica_sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets that an object with this uid controls, by name."""
    found = []
    for one in replica_sets:
        owner = controller_of(one.metadata)
        if owner is not None and owner.uid == uid:
            found.append(one)
    return sorted(found, key=lambda one: one.metadata.name)


def _revision(replica_set: ReplicaSet) -> int:
    text = (replica_set.metadata.annotations or {}).get(REVISION, "")
    return int(text) if text.isascii() and text.isdecimal() else 0
