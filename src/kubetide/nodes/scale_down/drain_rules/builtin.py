"""Upstream's drain rules, one function each.

Source: Cluster Autoscaler, simulator drainability rules (core commit 6e285e0f4b4f).
"""

from __future__ import annotations

from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.scale_down.drain_rules.base import DRAIN, SKIP, WAIT, Answer, DrainContext, block
from kubetide.nodes.scale_down.names import KUBE_SYSTEM, SAFE_TO_EVICT, SAFE_TO_EVICT_LOCAL_VOLUMES
from kubetide.nodes.scale_down.pods import (
    annotation,
    is_long_terminating,
    is_terminal,
    long_terminating_from,
)
from kubetide.objects.meta import OwnerReference, controller_of
from kubetide.objects.pod import Pod, Volume
from kubetide.objects.workload import ReplicaSet, ReplicationController
from kubetide.units.time import Instant, after, format_duration, instant_of

_REPLICATED_KINDS = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
_CHECKED_KINDS = (*_REPLICATED_KINDS, "DaemonSet")


def mirror(pod: Pod, _context: DrainContext) -> Answer | None:
    """A mirror pod ends with its node."""
    return SKIP if is_mirror_pod(pod) else None


def long_terminating(pod: Pod, context: DrainContext) -> Answer | None:
    """A pod that should have ended some time ago no longer counts."""
    return SKIP if is_long_terminating(pod, context.now) else None


def long_terminating_changes(pod: Pod, _context: DrainContext) -> Instant | None:
    since = long_terminating_from(pod)
    # The time must be exceeded, so the answer changes one nanosecond later.
    return None if since is None else Instant(since + 1)


def replica_count(pod: Pod, context: DrainContext) -> Answer | None:
    """The controller must exist, and have enough replicas to replace the pod."""
    if not context.settings.skip_nodes_with_custom_controller_pods:
        return None
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind not in _CHECKED_KINDS or not _is_read(pod, owner):
        return None
    known = context.owners.get(owner.kind)
    if known is None:
        return None
    found = known.get((pod.metadata.namespace, owner.name))
    if found is None:
        return block(
            "ControllerNotFound", f"{owner.kind} {pod.metadata.namespace}/{owner.name} does not exist"
        )
    if not isinstance(found, (ReplicaSet, ReplicationController)):
        return None
    replicas, minimum = found.spec.replicas, context.settings.min_replica_count
    # Without a number upstream compares nothing, though the API takes it for 1.
    if replicas is not None and replicas < minimum:
        return block(
            "MinReplicasReached",
            f"{owner.kind} {owner.name} has {replicas} replicas, --min-replica-count is {minimum}",
        )
    return None


def _is_read(pod: Pod, owner: OwnerReference) -> bool:
    """Upstream reads DaemonSets and StatefulSets of Kubernetes' own group alone.

    A pod that only an annotation calls a DaemonSet's has no other owner read, save a ReplicationController.
    """
    if owner.kind in ("DaemonSet", "StatefulSet"):
        group, slash, version = owner.api_version.partition("/")
        if group != "apps" or not slash or "/" in version:
            return False
    return owner.kind in ("DaemonSet", "ReplicationController") or not is_daemon_set_pod(pod)


def daemon_set(pod: Pod, _context: DrainContext) -> Answer | None:
    """A DaemonSet pod belongs to its node and needs no other node."""
    return DRAIN if is_daemon_set_pod(pod) else None


def safe_to_evict(pod: Pod, _context: DrainContext) -> Answer | None:
    """The owner declares that the pod may be moved, whatever later rules say."""
    return DRAIN if annotation(pod, SAFE_TO_EVICT) == "true" else None


def terminal(pod: Pod, _context: DrainContext) -> Answer | None:
    """A finished pod blocks nothing."""
    return DRAIN if is_terminal(pod) else None


def on_completion(pod: Pod, _context: DrainContext) -> Answer | None:
    """The owner declares that the pod must end by itself."""
    return WAIT if annotation(pod, SAFE_TO_EVICT) == "on-completion" else None


def not_replicated(pod: Pod, context: DrainContext) -> Answer | None:
    """A pod that no controller would recreate blocks."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return block("NotReplicated", "the pod has no controller that would make it again")
    if context.settings.skip_nodes_with_custom_controller_pods and owner.kind not in _REPLICATED_KINDS:
        return block(
            "NotReplicated",
            f"its controller is a {owner.kind}, and --skip-nodes-with-custom-controller-pods is on",
        )
    return None


def kube_system(pod: Pod, context: DrainContext) -> Answer | None:
    """A system pod without a disruption budget blocks for a while after its creation."""
    if not context.settings.skip_nodes_with_system_pods or pod.metadata.namespace != KUBE_SYSTEM:
        return None
    if context.allowances.budgets_of(pod):
        return None
    movable_from = _system_pod_movable_from(pod, context)
    if movable_from is not None and movable_from < context.now:
        return DRAIN
    wait = format_duration(context.settings.blocking_system_pod_distruption_timeout)
    return block(
        "UnmovableKubeSystemPod", f"no budget covers the system pod, and it is not older than {wait}"
    )


def kube_system_changes(pod: Pod, context: DrainContext) -> Instant | None:
    if pod.metadata.namespace != KUBE_SYSTEM:
        return None
    movable_from = _system_pod_movable_from(pod, context)
    return None if movable_from is None else Instant(movable_from + 1)


def _system_pod_movable_from(pod: Pod, context: DrainContext) -> Instant | None:
    created = instant_of(pod.metadata.creation_timestamp)
    if created is None:
        return None
    return after(created, context.settings.blocking_system_pod_distruption_timeout)


def not_safe_to_evict(pod: Pod, _context: DrainContext) -> Answer | None:
    """The owner declares that the pod must stay."""
    if annotation(pod, SAFE_TO_EVICT) == "false":
        return block("NotSafeToEvictAnnotation", f'annotation {SAFE_TO_EVICT} is "false"')
    return None


def local_storage(pod: Pod, context: DrainContext) -> Answer | None:
    """A pod with data on the node's disk blocks: the data would be lost."""
    if not context.settings.skip_nodes_with_local_storage:
        return None
    safe = annotation(pod, SAFE_TO_EVICT_LOCAL_VOLUMES).split(",")
    for volume in pod.spec.volumes or ():
        if _is_local(volume) and volume.name not in safe:
            kind = "a hostPath" if volume.host_path is not None else "an emptyDir"
            return block("LocalStorageRequested", f"volume {volume.name} is {kind} on the node")
    return None


def _is_local(volume: Volume) -> bool:
    if volume.host_path is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium != "Memory"


def disruption_budget(pod: Pod, context: DrainContext) -> Answer | None:
    """Every budget that selects the pod must still allow a disruption."""
    refusing = context.allowances.refusing(pod)
    if refusing is None:
        return None
    namespace, name = refusing
    return block("NotEnoughPdb", f"PodDisruptionBudget {namespace}/{name} allows no disruption now")
