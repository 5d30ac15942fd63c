"""Pod facts for scale-down."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant, after, instant_of, seconds

_DEFAULT_GRACE_S = 30
_LONG_TERMINATING: Duration = seconds(30)


def in_order(node_name: str, pods: Sequence[Pod]) -> list[Pod]:
    """Return a node's pods in upstream's order: its own by name, then those placed by a simulation."""
    there: list[Pod] = []
    put: list[Pod] = []
    for pod in pods:
        (there if pod.spec.node_name == node_name else put).append(pod)
    there.sort(key=key_of)
    return there + put


def annotation(pod: Pod, name: str) -> str:
    """Return the annotation's value, empty if it is missing."""
    return (pod.metadata.annotations or {}).get(name, "")


def is_terminal(pod: Pod) -> bool:
    """Return whether the pod has ended and its kubelet will not restart it; one that has failed never is."""
    if pod.status.phase == "Failed":
        return True
    return pod.status.phase == "Succeeded" and pod.spec.restart_policy in {"Never", "OnFailure"}


def grace_seconds(pod: Pod) -> int:
    """Return the pod's own termination grace, 30 s when it has none."""
    grace = pod.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE_S if grace is None else grace


def long_terminating_from(pod: Pod) -> Instant | None:
    """Return from when the pod counts as gone though it still exists; None if it is not being deleted.

    Source: the deletion's time, the grace of the pod's spec and 30 s must have passed.
    """
    deleted = instant_of(pod.metadata.deletion_timestamp)
    if deleted is None:
        return None
    return after(after(deleted, seconds(grace_seconds(pod))), _LONG_TERMINATING)


def is_long_terminating(pod: Pod, now: Instant) -> bool:
    """Return whether the pod should have ended 30 s ago."""
    since = long_terminating_from(pod)
    return since is not None and since < now


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Return whether the pod's priority is below --expendable-pods-priority-cutoff; a pod without one never is."""
    return pod.spec.priority is not None and pod.spec.priority < cutoff
