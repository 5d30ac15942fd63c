"""Objects with only what the loop reads, so that heartbeats and statuses change nothing and fill no record.

Pods have a module of their own (``slim_pods``).
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern

import msgspec
from msgspec.structs import force_setattr, replace

from kubetide.nodes.facts.nodes import MIRROR_ANNOTATION, SOURCE_ANNOTATION
from kubetide.objects.base import Quantities
from kubetide.objects.batch import Job, JobSpec, JobStatus
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Namespace, Node, NodeStatus
from kubetide.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubetide.objects.statefulset import StatefulSet, StatefulSetSpec
from kubetide.objects.vpa import UPDATES_ANNOTATION
from kubetide.objects.workload import (
    DaemonSet,
    DaemonSetStatus,
    Deployment,
    ReplicaSet,
    ReplicationController,
    WorkloadStatus,
)

_KEPT_ANNOTATIONS = (
    "cluster-autoscaler.kubernetes.io/",
    "cluster-autoscaler.k8s.io/",
    "delay-deletion.cluster-autoscaler.kubernetes.io/",
    "autoscaling.x-k8s.io/",
    MIRROR_ANNOTATION,
    SOURCE_ANNOTATION,
    UPDATES_ANNOTATION,
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Quantities)


def slim_node(node: Node) -> Node:
    """Return the node without heartbeat times, messages and unrelated annotations."""
    conditions = tuple(
        Condition(
            type=intern(one.type),
            status=intern(one.status),
            last_transition_time=one.last_transition_time and intern(one.last_transition_time),
        )
        for one in node.status.conditions or ()
    )
    status = NodeStatus(
        capacity=_once(node.status.capacity),
        allocatable=_once(node.status.allocatable),
        conditions=conditions or None,
        declared_features=node.status.declared_features,
    )
    return Node(metadata=slim_meta(node.metadata), spec=node.spec, status=status)


def keep_node(node: Node) -> Node:
    """Like ``slim_node``, but consumes the node: equal label texts are stored once."""
    small = slim_node(node)
    meta = small.metadata
    if meta.labels:
        # Nobody has seen it yet.
        force_setattr(meta, "labels", {intern(key): intern(value) for key, value in meta.labels.items()})
    return small


def _once(amounts: Quantities | None) -> Quantities | None:
    """Return amounts that are the same object for all nodes with the same, written in the same way and order."""
    try:
        return None if amounts is None else _amounts(_encoder.encode(amounts))
    except OverflowError:
        return amounts  # a number that no int64 holds


@lru_cache(maxsize=1 << 10)
def _amounts(encoded: bytes) -> Quantities:
    return _decoder.decode(encoded)


def slim_replica_set(item: ReplicaSet) -> ReplicaSet:
    """Return the ReplicaSet without its status."""
    return replace(item, metadata=_with_generation(item.metadata), status=WorkloadStatus())


def slim_replication_controller(item: ReplicationController) -> ReplicationController:
    """Return the ReplicationController with its name and its replicas."""
    return replace(item, metadata=_name_of(item.metadata))


def slim_deployment(item: Deployment) -> Deployment:
    """Return the Deployment without its status."""
    return replace(item, metadata=_with_generation(item.metadata), status=WorkloadStatus())


def slim_daemon_set(item: DaemonSet) -> DaemonSet:
    """Return the DaemonSet without its status."""
    return replace(item, metadata=slim_meta(item.metadata), status=DaemonSetStatus())


def slim_stateful_set(item: StatefulSet) -> StatefulSet:
    """Return the StatefulSet with only its name, replicas, and whether it makes them side by side."""
    policy = item.spec.pod_management_policy
    spec = StatefulSetSpec(replicas=item.spec.replicas, pod_management_policy=policy)
    return StatefulSet(metadata=_name_of(item.metadata), spec=spec)


def slim_job(item: Job) -> Job:
    """Return the Job with only its name and number of pods."""
    spec = JobSpec(parallelism=item.spec.parallelism, completions=item.spec.completions)
    return Job(metadata=_name_of(item.metadata), spec=spec, status=JobStatus(succeeded=item.status.succeeded))


def slim_namespace(item: Namespace) -> Namespace:
    """Return the namespace with its labels, which namespace selectors read."""
    return Namespace(metadata=ObjectMeta(name=item.metadata.name, labels=item.metadata.labels))


def _name_of(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, generation=meta.generation)


def _with_generation(meta: ObjectMeta) -> ObjectMeta:
    """Return the metadata with the generation, by which the copies of a pod template are kept up to date."""
    return replace(slim_meta(meta), generation=meta.generation)


def slim_pdb(item: PodDisruptionBudget) -> PodDisruptionBudget:
    """Return the budget with only the allowance of its status."""
    status = PodDisruptionBudgetStatus(disruptions_allowed=item.status.disruptions_allowed)
    return replace(item, metadata=slim_meta(item.metadata), status=status)


def slim_meta(meta: ObjectMeta, *, like: ObjectMeta | None = None) -> ObjectMeta:
    """Return the metadata that the loop reads; parts equal to ``like`` are shared with it."""
    labels, owners, annotations = meta.labels, meta.owner_references, meta.annotations
    if annotations:
        annotations = {
            name: value for name, value in annotations.items() if name.startswith(_KEPT_ANNOTATIONS)
        }
    if like is not None:
        labels = like.labels if like.labels == labels else labels
        owners = like.owner_references if like.owner_references == owners else owners
        annotations = like.annotations if like.annotations == annotations else annotations
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
        labels=labels,
        annotations=annotations or None,
        owner_references=owners,
    )
