"""The words of FailedScheduling."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.scheduling import PodClass, Snapshot

NO_NODES = "no nodes available to schedule pods"


def why_nowhere(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Gives the message of FailedScheduling for a pod that fits nowhere, without the part about preemption.

    Source: kube-scheduler 1.36 FitError: what PreFilter refuses stands alone, without counts.
    """
    everywhere = snapshot.refused_everywhere(pod_class)
    if everywhere is not None and everywhere.phase == "PreFilter" and len(snapshot):
        return f"0/{len(snapshot)} nodes are available: {', '.join(everywhere.reasons)}."
    return refusal_message(len(snapshot), snapshot.refusals(pod_class))


def refusal_message(nodes: int, reasons: Mapping[str, int]) -> str:
    """Gives the message for what nodes say each by itself.

    Args:
        nodes: How many nodes there are.
        reasons: Reason to the number of nodes that gave it.

    Source: kube-scheduler 1.36 FitError: counts and reasons sorted as text.
    """
    if not nodes:
        return NO_NODES
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available" + (f": {listed}." if listed else ".")
