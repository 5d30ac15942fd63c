"""Objects with only what the loop reads: so that heartbeats and statuses change nothing and fill no record.

Pods are many, so those of one owner share all that is equal (``PodSlimmer``): what a pod has for itself is its
name, its uid and its node.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from kubetide.nodes.node_facts import MIRROR_ANNOTATION
from kubetide.objects.batch import Job
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Namespace, Node, NodeStatus
from kubetide.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus
from kubetide.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, DaemonSetStatus, Deployment, ReplicaSet, WorkloadStatus
from kubetide.units.recent import Recent

T = TypeVar("T")

_MOST_OWNERS = 8_192
"""Owners whose pods share; those of which no pod was seen for longest are forgotten."""

_KEPT_ANNOTATIONS = (
    "cluster-autoscaler.kubernetes.io/",
    "cluster-autoscaler.k8s.io/",
    "delay-deletion.cluster-autoscaler.kubernetes.io/",
    "autoscaling.x-k8s.io/",
    MIRROR_ANNOTATION,
)
_KEPT_POD_CONDITIONS = ("PodScheduled", "PodResizePending", "PodResizeInProgress")


def slim_node(node: Node) -> Node:
    """Gives the node without heartbeat times, messages and annotations of others."""
    conditions = tuple(
        Condition(type=one.type, status=one.status, last_transition_time=one.last_transition_time)
        for one in node.status.conditions or ()
    )
    status = NodeStatus(
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
        conditions=conditions or None,
        declared_features=node.status.declared_features,
    )
    return Node(metadata=_meta(node.metadata), spec=node.spec, status=status)


class PodSlimmer:
    """Slims pods as ``slim_pod`` does; those of one owner share what is equal."""

    def __init__(self) -> None:
        self._last_of: Recent[str, Pod] = Recent(_MOST_OWNERS)

    def slim(self, pod: Pod) -> Pod:
        """Gives the pod with only what the loop reads. What is in it is shared, so nobody may change it."""
        owners = pod.metadata.owner_references
        if not owners:
            return slim_pod(pod)
        owner = owners[0].uid
        small = slim_pod(pod, like=self._last_of.get(owner))
        self._last_of.put(owner, small)
        return small


def slim_pod(pod: Pod, *, like: Pod | None = None) -> Pod:
    """Gives the pod without what its kubelet reports, but for resources and why it is not scheduled.

    Projected volumes go as well: nearly every pod has one with a token, under a name of its own, and no rule
    looks into it.

    Args:
        like: A slim pod that may have much in common with this one: what is equal is taken over from it.
    """
    if like is None:
        return Pod(metadata=_meta(pod.metadata), spec=_spec(pod.spec), status=_status(pod.status))
    meta, others = _meta(pod.metadata), like.metadata
    return Pod(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
            deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
            labels=_once(meta.labels, others.labels),
            annotations=_once(meta.annotations, others.annotations),
            owner_references=_once(meta.owner_references, others.owner_references),
        ),
        spec=_spec(pod.spec, like.spec),
        status=_status(pod.status),
    )


def slim_replica_set(item: ReplicaSet) -> ReplicaSet:
    """Gives the ReplicaSet without its status."""
    return replace(item, metadata=_meta(item.metadata), status=WorkloadStatus())


def slim_deployment(item: Deployment) -> Deployment:
    """Gives the Deployment without its status."""
    return replace(item, metadata=_meta(item.metadata), status=WorkloadStatus())


def slim_daemon_set(item: DaemonSet) -> DaemonSet:
    """Gives the DaemonSet without its status."""
    return replace(item, metadata=_meta(item.metadata), status=DaemonSetStatus())


def slim_stateful_set(item: StatefulSet) -> StatefulSet:
    """Gives that the StatefulSet is there: nothing else of it is read."""
    return StatefulSet(metadata=_name_of(item.metadata))


def slim_job(item: Job) -> Job:
    """Gives that the Job is there: nothing else of it is read."""
    return Job(metadata=_name_of(item.metadata))


def slim_namespace(item: Namespace) -> Namespace:
    """Gives the namespace with its labels, which selectors of namespaces read."""
    return Namespace(metadata=ObjectMeta(name=item.metadata.name, labels=item.metadata.labels))


def _name_of(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid)


def slim_pdb(item: PodDisruptionBudget) -> PodDisruptionBudget:
    """Gives the budget with no more of its status than the allowance."""
    status = PodDisruptionBudgetStatus(disruptions_allowed=item.status.disruptions_allowed)
    return replace(item, metadata=_meta(item.metadata), status=status)


def _meta(meta: ObjectMeta) -> ObjectMeta:
    annotations = {
        name: value for name, value in (meta.annotations or {}).items() if name.startswith(_KEPT_ANNOTATIONS)
    }
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
        labels=meta.labels,
        annotations=annotations or None,
        owner_references=meta.owner_references,
    )


def _spec(spec: PodSpec, like: PodSpec | None = None) -> PodSpec:
    volumes = spec.volumes
    if not volumes:
        return spec
    dropped = [volume.name for volume in volumes if volume.projected is not None]
    if not dropped:
        return spec
    kept = tuple([volume for volume in volumes if volume.projected is None]) or None
    containers = _unmounted(spec.containers, dropped)
    first = _unmounted(spec.init_containers, dropped)
    if like is not None:
        kept = _once(kept, like.volumes)
        containers = _once(containers, like.containers)
        first = _once(first, like.init_containers)
    return replace(spec, volumes=kept, containers=containers, init_containers=first)


def _unmounted(containers: tuple[Container, ...] | None, names: list[str]) -> tuple[Container, ...] | None:
    if not containers:
        return containers
    return tuple(
        [
            replace(one, volume_mounts=tuple([m for m in one.volume_mounts if m.name not in names]) or None)
            if one.volume_mounts
            else one
            for one in containers
        ]
    )


def _once(own: T, known: T) -> T:
    """Gives the known one where both are equal."""
    return known if own is not None and own == known else own


def _status(status: PodStatus) -> PodStatus:
    conditions = tuple(
        [
            (one.type, one.status, one.reason)
            for one in status.conditions or ()
            if one.type in _KEPT_POD_CONDITIONS
        ]
    )
    plain = _plain_status(status.phase, conditions, status.nominated_node_name)
    containers, first = _resized(status.container_statuses), _resized(status.init_container_statuses)
    claims = status.resource_claim_statuses
    if not (containers or first or status.resources or status.allocated_resources or claims):
        return plain
    return replace(
        plain,
        resource_claim_statuses=claims,
        container_statuses=containers,
        init_container_statuses=first,
        resources=status.resources,
        allocated_resources=status.allocated_resources,
    )


# Nearly all pods have one of a few.
@lru_cache(maxsize=1 << 10)
def _plain_status(phase: str, conditions: tuple[tuple[str, str, str], ...], nominated: str) -> PodStatus:
    return PodStatus(
        phase=phase,
        conditions=tuple([Condition(type=t, status=s, reason=r) for t, s, r in conditions]) or None,
        nominated_node_name=nominated,
    )


def _resized(statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
    kept = tuple(
        ContainerStatus(name=one.name, resources=one.resources, allocated_resources=one.allocated_resources)
        for one in statuses or ()
        if one.resources is not None or one.allocated_resources is not None
    )
    return kept or None
