"""The words of FailedScheduling, and the status of a pod that fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kubetide.embedded.controllers.pod_conditions import conditions_with
from kubetide.embedded.controllers.scheduling.pod_chooser import PodChooser
from kubetide.objects.base import Json
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Pod, pod_condition
from kubetide.scheduling import ERROR, PodClass, Snapshot
from kubetide.scheduling.filters.dynamic_resources import DynamicResources
from kubetide.scheduling.scoring import ScoredSnapshot, ScoreError
from kubetide.units.time import Instant, format_rfc3339

NO_NODES = "no nodes available to schedule pods"

_NO_CLAIMS = "no new claims to deallocate"
_WITH_CLAIMS = "still not schedulable"
_NO_STATE = "not found"
"""What the plugin of device claims fails with where another one's PreFilter has refused the pod: nobody preempts then."""

NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_HELP = "Preemption is not helpful for scheduling"


class Refused(NamedTuple):
    """Why a pod gets no node, as of a version of the snapshot.

    Attributes:
        reason: Of its condition.
        message: Of its condition, without what PostFilter plugins add to it.
        nodes: How many there are.
        resolvable: On how many of them the removal of pods could help.
        claims: What the plugin of device claims adds, before preemption does.
        preempts: Whether other pods may be preempted for it.
        gated: Whether it is not tried at all, and nothing is written: its claims for devices are not there.
    """

    version: int
    reason: str
    message: str
    nodes: int = 0
    resolvable: int = 0
    claims: str = ""
    preempts: bool = False
    gated: bool = False

    def with_preemption(self, outcome: str) -> str:
        """Return the message as kube-scheduler writes it.

        Args:
            outcome: Why nobody is preempted; empty where somebody is, or nobody was to be.
        """
        if self.preempts and not outcome:
            return self.message  # what other plugins say is dropped with the success
        added = ", ".join(filter(None, (self.claims, outcome and f"preemption: {outcome}")))
        return f"{self.message} {added}" if added else self.message


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
    version, nodes = snapshot.version, len(snapshot)
    failed = failure(snapshot, pod_class)
    if failed:
        return Refused(version, "SchedulerError", failed)
    if fits:
        return None
    everywhere = snapshot.refused_everywhere(pod_class)
    if everywhere is not None and everywhere.plugin == DynamicResources.name:
        # Its PreEnqueue says no before its PreFilter could.
        return Refused(version, "Unschedulable", everywhere.reasons[0], nodes, gated=True)
    if not nodes:
        return Refused(version, "Unschedulable", NO_NODES)
    if everywhere is not None and everywhere.phase == "PreFilter":
        message = f"0/{nodes} nodes are available: {', '.join(everywhere.reasons)}."
        return Refused(version, "Unschedulable", message, nodes, claims=_NO_STATE)
    diagnosis = snapshot.diagnose(pod_class)
    return Refused(
        version,
        "Unschedulable",
        refusal_message(nodes, diagnosis.reasons),
        nodes,
        int(np.count_nonzero(diagnosis.resolvable)),
        _said_of_claims(snapshot, pod_class),
        preempts=True,
    )


def _said_of_claims(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Return what the plugin of device claims adds after a search of the nodes; of a pod without any from v1.37 on nothing."""
    if snapshot.asks_for_devices(pod_class):
        return _WITH_CLAIMS
    return _NO_CLAIMS if snapshot.facts.minor < 37 else ""


def why_nowhere(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Return the message of FailedScheduling for a pod that fits nowhere, without what PostFilter plugins add to it.

    Source: kube-scheduler 1.36 FitError: what PreFilter refuses stands alone, without counts.
    """
    found = refused(snapshot, pod_class, fits=False)
    assert found is not None, "it does not fit"
    return found.message


def nobody_preempted(why: Refused, reasons: Mapping[str, int] | None = None) -> str:
    """Return why preemption helps on no node.

    Args:
        reasons: Reason to the number of nodes that give it where the removal of pods could help; without, there is no pod of a
            lower priority.

    Source: kube-scheduler 1.36, framework/preemption.
    """
    said = {NO_VICTIMS: why.resolvable} if reasons is None else dict(reasons)
    said[_NO_HELP] = why.nodes - why.resolvable
    return refusal_message(why.nodes, {reason: count for reason, count in said.items() if count})


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


def refusal_patch(pod: Pod, reason: str, message: str, now: Instant, *, nominated: str = "") -> Json | None:
    """Return the patch of a status that says why the pod fits nowhere, and where room is made for it; None where it says so already."""
    known = pod_condition(pod, "PodScheduled")
    same = nominated == pod.status.nominated_node_name
    if (
        known is not None
        and (known.status, known.reason, known.message) == ("False", reason, message)
        and same
    ):
        return None
    since = known.last_transition_time if known is not None and known.status == "False" else None
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason=reason,
        message=message,
        last_transition_time=since or format_rfc3339(now),
    )
    status: Json = {"conditions": conditions_with(pod, condition)}
    if not same:
        status["nominatedNodeName"] = nominated or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
