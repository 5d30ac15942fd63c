"""Errors for a pod that blocks the deletion of its node when the pods are looked at again."""

from __future__ import annotations

from tests.nodes.reference.drain_rules import replicas_of
from tests.nodes.reference.places import pod_key
from tests.nodes.reference.pod_kinds import controller
from tests.nodes.reference.world import Json, World

LISTED = {
    "ReplicationController": "replicationcontroller",
    "ReplicaSet": "replicaset.apps",
    "StatefulSet": "statefulset.apps",
    "DaemonSet": "daemonset.apps",
    "Job": "job.batch",
}
MISSING = {
    "DaemonSet": "daemonset for {} is not present, err: {}",
    "Job": "job for {} is not available: err: {}",
    "StatefulSet": "statefulset for {} is not available: err: {}",
}
MISSING_REPLICAS = "replication controller for {} is not available, err: {}"


def blocking_error(world: World, pod: Json, reason: str) -> str:
    """Return upstream's text for the reason why the pod blocks."""
    key, name = "/".join(pod_key(pod)), pod["metadata"]["name"]
    owner = controller(pod)
    if reason == "ControllerNotFound" and owner is not None:
        missing = f'{LISTED[owner["kind"]]} "{owner["name"]}" not found'
        return MISSING.get(owner["kind"], MISSING_REPLICAS).format(key, missing)
    if reason == "MinReplicasReached":
        # Upstream prints the address of the number.
        spec, least = replicas_of(world, pod), world.flags.whole("min-replica-count")
        return f"replication controller for {key} has too few replicas spec: {spec} min: {least}"
    return {
        "NotReplicated": f"{key} is not replicated",
        "UnmovableKubeSystemPod": f"non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present: {name}",
        "NotSafeToEvictAnnotation": f"pod annotated as not safe to evict present: {name}",
        "LocalStorageRequested": f"pod with local storage present: {name}",
        "NotEnoughPdb": f"not enough pod disruption budget to move {key}",
    }[reason]
