"""The pod template of a CapacityBuffer, and the replicas of its workload."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubetide.nodes.facts.capacity import CapacityChanges, slim_template
from kubetide.nodes.state import State
from kubetide.objects.capacity import CapacityBuffer, ScalableReference
from kubetide.objects.kinds import (
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Kind,
)
from kubetide.objects.meta import ObjectMeta, controller_of
from kubetide.objects.pod import Pod, PodTemplate

_BUILT_IN: Final[dict[tuple[str, str], Kind[Any]]] = {
    (kind.group, kind.kind): kind
    for kind in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, JOBS, REPLICATION_CONTROLLERS)
}


class NotResolved(ValueError):
    """The object that the buffer references does not exist; the message says which."""


class Workload(msgspec.Struct, frozen=True):
    """A scalable object and its pods.

    Attributes:
        kind: Of a built-in kind; None of a custom one.
        pods: Its pods that are not being deleted, in name order.
        replicas: How many it asks for; None where that is not known.
        template: What its pods are made of; None where that is not held.
        version: Uid and generation of its object, which tell that its template may be another one.
    """

    kind: Kind[Any] | None
    pods: tuple[Pod, ...]
    replicas: int | None = None
    template: PodTemplate | None = None
    version: str = ""

    @property
    def newest(self) -> Pod | None:
        """The pod that was created last."""
        return max(
            self.pods,
            key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name),
            default=None,
        )


def workload_of(state: State, buffer: CapacityBuffer) -> Workload:
    """Return the workload that a buffer's ``scalableRef`` names. Raises NotResolved."""
    reference = buffer.spec.scalable_ref
    assert reference is not None, "the buffer is one of a workload"
    namespace = buffer.metadata.namespace
    group = "" if reference.api_group == "core" else reference.api_group
    kind = _BUILT_IN.get((group, reference.kind))
    found = (
        _custom(state, namespace, group, reference)
        if kind is None
        else _built_in(state, kind, namespace, reference)
    )
    if found is None:
        raise NotResolved(
            f"Couldn't resolve buffer {buffer.metadata.name}: there is no {reference.kind} "
            f"{namespace}/{reference.name}{_of_group(group)}, and no pod that one controls{_advice(group, reference)}"
        )
    return found


def _of_group(group: str) -> str:
    return f" of group {group}" if group else ""


def _advice(group: str, reference: ScalableReference) -> str:
    """Return what to write if the kind is a built-in one of another group, such as a Deployment without a group."""
    known = next((one.group for one in _BUILT_IN.values() if one.kind == reference.kind), group)
    return "" if known == group else f"; a {reference.kind} has spec.scalableRef.apiGroup: {known or 'core'}"


def template_of_workload(workload: Workload) -> PodTemplate | None:
    """Return the template for the buffer: a copy of the newest pod, which includes what admission added.

    Without a pod it is the workload's own; None where that is not held.
    """
    newest = workload.newest
    if newest is None:
        return None if workload.template is None else slim_template(workload.template)
    made = PodTemplate(
        metadata=ObjectMeta(labels=newest.metadata.labels, annotations=newest.metadata.annotations),
        spec=replace(newest.spec, node_name=""),
    )
    return slim_template(made)


def copied_from(workload: Workload, name: str) -> tuple[str, str, str]:
    """Return plural, name and identity of the object that the buffer's template is copied from."""
    newest = workload.newest
    if newest is not None:
        return PODS.plural, newest.metadata.name, newest.metadata.uid
    assert workload.kind is not None, "a workload without pods is of a built-in kind"
    return workload.kind.plural, name, workload.version


def _built_in(state: State, kind: Kind[Any], namespace: str, reference: ScalableReference) -> Workload | None:
    key = (namespace, reference.name)
    if kind is DEPLOYMENTS:
        deployment = state.deployments.get(key)
        if deployment is None:
            return None
        sets = [
            one.metadata.uid
            for (place, _), one in sorted(state.replica_sets.items())
            if place == namespace and _is_of(one.metadata, deployment.metadata.uid)
        ]
        pods = tuple(pod for uid in sets for pod in state.held_pods.controlled_by(uid))
        template, version = deployment.spec.template, _version_of(deployment.metadata)
        return Workload(kind, pods, _or_one(deployment.spec.replicas), template, version)
    if kind is REPLICA_SETS:
        replica_set = state.replica_sets.get(key)
        if replica_set is None:
            return None
        pods = tuple(state.held_pods.controlled_by(replica_set.metadata.uid))
        template, version = replica_set.spec.template, _version_of(replica_set.metadata)
        return Workload(kind, pods, _or_one(replica_set.spec.replicas), template, version)
    if kind is STATEFUL_SETS:
        stateful_set = state.stateful_sets.get(key)
        if stateful_set is None:
            return None
        pods = tuple(state.held_pods.controlled_by(stateful_set.metadata.uid))
        version = _version_of(stateful_set.metadata)
        return Workload(kind, pods, _or_one(stateful_set.spec.replicas), version=version)
    if kind is JOBS:
        job = state.jobs.get(key)
        if job is None:
            return None
        # A Job has no scale subresource, by which upstream finds the pods of a workload.
        return Workload(kind, (), _or_one(job.spec.parallelism), version=_version_of(job.metadata))
    controller = (state.replication_controllers or {}).get(key)
    if controller is not None:
        pods = tuple(state.held_pods.controlled_by(controller.metadata.uid))
        replicas, version = _or_one(controller.spec.replicas), _version_of(controller.metadata)
        return Workload(kind, pods, replicas, version=version)
    return _custom(state, namespace, kind.group, reference)


def names_replication_controller(changes: CapacityChanges | None) -> bool:
    """Return whether one of the buffers is one of a ReplicationController."""
    references = [one.spec.scalable_ref for one in (changes.capacity_buffers if changes is not None else ())]
    return any(
        one.kind == REPLICATION_CONTROLLERS.kind and one.api_group in {"", "core"}
        for one in references
        if one is not None
    )


def _custom(state: State, namespace: str, group: str, reference: ScalableReference) -> Workload | None:
    """Return a workload of which only its pods are known; the versions of its group do not matter."""
    for uid, place, owner in state.held_pods.controllers():
        named = (place, owner.api_version.rpartition("/")[0], owner.kind, owner.name)
        if named == (namespace, group, reference.kind, reference.name):
            return Workload(None, tuple(state.held_pods.controlled_by(uid)))
    return None


def _is_of(meta: ObjectMeta, uid: str) -> bool:
    owner = controller_of(meta)
    return owner is not None and owner.uid == uid


def _version_of(meta: ObjectMeta) -> str:
    return f"{meta.uid}@{meta.generation}"


def _or_one(replicas: int | None) -> int:
    return 1 if replicas is None else replicas
