"""How to unblock a node that stays: the fix for each reason of a pod that keeps it, and of the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.nodes.explain.reserved_capacity import BOOKED, blocker_text, is_booking
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.names import SAFE_TO_EVICT, SAFE_TO_EVICT_LOCAL_VOLUMES, SCALE_DOWN_DISABLED
from kubetide.nodes.state import State

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
    "NodeGroupMinSizeReached": "lower the group's minimum at the cloud",
    "MinimalResourceLimitExceeded": "lower that minimum of the cluster",
    "ScaleDownUnreadyDisabled": "repair the node or delete it, or set --scale-down-unready-enabled",
    BOOKED: "delete that request if its pods are not to come",
    "DisruptionBudget": "let --consolidation-budgets disrupt more nodes at this time",
    "ScaleDownDisabledAnnotation": f"take the annotation {SCALE_DOWN_DISABLED} off the node",
}

LASTING: Final = frozenset(
    {"MinReplicasReached", "NotReplicated", "LocalStorageRequested", "NotSafeToEvictAnnotation"}
)
"""Reasons that neither the passing of time nor a budget changes."""


def fix_for(reason: str | None) -> str:
    """Return what a person can do about a blocking reason; empty if nothing helps."""
    return _WAYS.get(reason or "", "")


def detail_of(state: State, verdict: UnremovableNode, simulated: UnremovableNode) -> str:
    """Return what keeps a node, in sentences behind a blank; empty for nothing more than the reason.

    Args:
        state: What is read.
        verdict: Why it stays now.
        simulated: What its last simulated removal said.
    """
    if is_booking(state, simulated.blocking_pod):
        return f" {_capitalized(blocker_text(state, simulated.blocking_pod, ''))}."
    detail = f" {verdict.detail}" if verdict.detail else ""
    if not verdict.blocking_pod:
        return detail
    return f" {_capitalized(blocker_text(state, verdict.blocking_pod, verdict.blocking_reason))}.{detail}"


def _capitalized(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
