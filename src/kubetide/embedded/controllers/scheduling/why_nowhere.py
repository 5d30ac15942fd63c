"""The words of FailedScheduling, and the status of a pod that fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubetide.embedded.controllers.pod_conditions import conditions_with
from kubetide.embedded.controllers.scheduling.pod_chooser import PodChooser
from kubetide.objects.base import Json
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Pod, pod_condition
from kubetide.scheduling import ERROR, PodClass, Snapshot
from kubetide.scheduling.scoring import ScoredSnapshot, ScoreError
from kubetide.units.time import Instant, format_rfc3339

NO_NODES = "no nodes available to schedule pods"


class Refused(NamedTuple):
    """Why a pod gets no node: reason and message of its condition, as of a version of the snapshot."""

    version: int
    reason: str
    message: str


def chosen(
    chooser: PodChooser, pod: Pod, pod_class: PodClass, snapshot: ScoredSnapshot
) -> tuple[str | None, Refused | None]:
    """Return the node for a pod of the class, or why it gets none."""
    try:
        node = chooser.choose(pod, pod_class, snapshot)
    except ScoreError as error:
        return None, Refused(snapshot.version, "SchedulerError", str(error))
    return node, refused(snapshot, pod_class, fits=node is not None)


def refused(snapshot: Snapshot, pod_class: PodClass, *, fits: bool) -> Refused | None:
    """Say why a pod gets no node; None for one that ``fits`` somewhere, and with which no plugin fails."""
    failed = failure(snapshot, pod_class)
    if failed:
        return Refused(snapshot.version, "SchedulerError", failed)
    return None if fits else Refused(snapshot.version, "Unschedulable", why_nowhere(snapshot, pod_class))


def why_nowhere(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Return the message of FailedScheduling for a pod that fits nowhere, without the part about preemption.

    Source: kube-scheduler 1.36 FitError: what PreFilter refuses stands alone, without counts.
    """
    failed = failure(snapshot, pod_class)
    if failed:
        return failed
    everywhere = snapshot.refused_everywhere(pod_class)
    if everywhere is not None and everywhere.phase == "PreFilter" and len(snapshot):
        return f"0/{len(snapshot)} nodes are available: {', '.join(everywhere.reasons)}."
    return refusal_message(len(snapshot), snapshot.refusals(pod_class))


def failure(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Return what a plugin has failed with rather than refused the pod; empty when none has.

    Source: kube-scheduler 1.36: one failure ends the attempt, whatever other nodes would say, and its words
    stand alone. (Of many nodes it may have found enough before.)
    """
    everywhere = snapshot.refused_everywhere(pod_class)
    if everywhere is not None and len(snapshot):
        return everywhere.reasons[0] if everywhere.code == ERROR else ""
    return snapshot.device_failure(pod_class)


def refusal_message(nodes: int, reasons: Mapping[str, int]) -> str:
    """Return the message for what nodes say each by itself.

    Args:
        nodes: How many nodes there are.
        reasons: Reason to the number of nodes that gave it.

    Source: kube-scheduler 1.36 FitError: counts and reasons sorted as text.
    """
    if not nodes:
        return NO_NODES
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available" + (f": {listed}." if listed else ".")


def refusal_patch(pod: Pod, why: Refused, now: Instant, *, nominated: str = "") -> Json | None:
    """Return the patch of a status that says why the pod fits nowhere, and where room is made for it; None where it says so already."""
    known = pod_condition(pod, "PodScheduled")
    stands = known is not None and (known.status, known.reason) == ("False", why.reason)
    same = nominated == pod.status.nominated_node_name
    if stands and known is not None and known.message == why.message and same:
        return None
    since = known.last_transition_time if stands and known is not None else None
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason=why.reason,
        message=why.message,
        last_transition_time=since or format_rfc3339(now),
    )
    status: Json = {"conditions": conditions_with(pod, condition)}
    if not same:
        status["nominatedNodeName"] = nominated or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
