"""Objects with only what the loop reads: so that heartbeats and statuses change nothing and fill no record."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.node_facts import MIRROR_ANNOTATION
from kubetide.objects.batch import Job
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Namespace, Node, NodeStatus
from kubetide.objects.pod import ContainerStatus, Pod, PodStatus
from kubetide.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, DaemonSetStatus, Deployment, ReplicaSet, WorkloadStatus

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


def slim_pod(pod: Pod) -> Pod:
    """Gives the pod without what its kubelet reports, but for resources and why it is not scheduled."""
    status = pod.status
    conditions = tuple(
        Condition(type=one.type, status=one.status, reason=one.reason)
        for one in status.conditions or ()
        if one.type in _KEPT_POD_CONDITIONS
    )
    return Pod(
        metadata=_meta(pod.metadata),
        spec=pod.spec,
        status=PodStatus(
            phase=status.phase,
            conditions=conditions or None,
            nominated_node_name=status.nominated_node_name,
            container_statuses=_resized(status.container_statuses),
            init_container_statuses=_resized(status.init_container_statuses),
            resources=status.resources,
            allocated_resources=status.allocated_resources,
        ),
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


def _resized(statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
    kept = tuple(
        ContainerStatus(name=one.name, resources=one.resources, allocated_resources=one.allocated_resources)
        for one in statuses or ()
        if one.resources is not None or one.allocated_resources is not None
    )
    return kept or None
