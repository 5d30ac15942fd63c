"""The errors of pods that block a removal, as events report them; people match on these texts.

Source: Cluster Autoscaler, the errors of its drainability rules.
"""

from __future__ import annotations

from kubetide.nodes.scale_down.drain_rules.evaluate import Blocked
from kubetide.objects.meta import controller_of, key_of
from kubetide.objects.pod import Pod

_RESOURCES = {
    "ReplicationController": "replicationcontroller",
    "ReplicaSet": "replicaset.apps",
    "StatefulSet": "statefulset.apps",
    "DaemonSet": "daemonset.apps",
    "Job": "job.batch",
}
_NOT_THERE = {
    "DaemonSet": "daemonset for {pod} is not present, err: {error}",
    "Job": "job for {pod} is not available: err: {error}",
    "StatefulSet": "statefulset for {pod} is not available: err: {error}",
}


def blocking_error(blocked: Blocked) -> str:
    """Return upstream's error about the pod; a rule of another package is reported by its own sentence."""
    pod, answer = blocked.pod, blocked.answer
    name, full_name = pod.metadata.name, "/".join(key_of(pod))
    match answer.reason:
        case "ControllerNotFound":
            return _not_there(pod, full_name)
        case "MinReplicasReached":
            return f"replication controller for {full_name} has too few replicas: {answer.detail}"
        case "NotReplicated":
            return f"{full_name} is not replicated"
        case "UnmovableKubeSystemPod":
            return f"non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present: {name}"
        case "NotSafeToEvictAnnotation":
            return f"pod annotated as not safe to evict present: {name}"
        case "LocalStorageRequested":
            return f"pod with local storage present: {name}"
        case "NotEnoughPdb":
            return f"not enough pod disruption budget to move {full_name}"
        case _:
            return answer.detail


def _not_there(pod: Pod, full_name: str) -> str:
    owner = controller_of(pod.metadata)
    assert owner is not None, "only a controller can be missing"
    error = f'{_RESOURCES.get(owner.kind, owner.kind)} "{owner.name}" not found'
    text = _NOT_THERE.get(owner.kind, "replication controller for {pod} is not available, err: {error}")
    return text.format(pod=full_name, error=error)
