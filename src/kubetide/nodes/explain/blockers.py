"""How to unblock a node that a pod keeps: the fix for each blocking reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.nodes.scale_down.names import SAFE_TO_EVICT, SAFE_TO_EVICT_LOCAL_VOLUMES

_WAYS: Final[Mapping[str, str]] = {
    "ControllerNotFound": "delete the pod, or make its controller again",
    "MinReplicasReached": "run more replicas than --min-replica-count",
    "NotReplicated": f'let a Deployment or a Job make the pod, or annotate it {SAFE_TO_EVICT}: "true"',
    "LocalStorageRequested": "move its data out of emptyDir and hostPath, name the volumes in the annotation "
    f'{SAFE_TO_EVICT_LOCAL_VOLUMES}, annotate it {SAFE_TO_EVICT}: "true", or set '
    "--skip-nodes-with-local-storage=false",
    "NotSafeToEvictAnnotation": f"take the annotation {SAFE_TO_EVICT}=false off when the pod may move",
    "UnmovableKubeSystemPod": f'give it a PodDisruptionBudget, annotate it {SAFE_TO_EVICT}: "true", or set '
    "--skip-nodes-with-system-pods=false",
    "NotEnoughPdb": "let its PodDisruptionBudget allow one pod more to go",
}

LASTING: Final = frozenset(
    {"MinReplicasReached", "NotReplicated", "LocalStorageRequested", "NotSafeToEvictAnnotation"}
)
"""Reasons that neither the passing of time nor a budget changes."""


def fix_for(reason: str | None) -> str:
    """Return what a person can do about a blocking reason; empty if nothing helps."""
    return _WAYS.get(reason or "", "")
