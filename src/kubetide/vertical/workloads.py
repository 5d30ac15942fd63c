"""Controllers of pods as the VPA programs see them: who owns whom, and which pods they select.

Source: vertical-pod-autoscaler 1.8.1, pkg/target and pkg/target/controller_fetcher.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kubetide.objects.batch import CronJob, Job
from kubetide.objects.meta import LabelSelector, OwnerReference
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController
from kubetide.units.selectors import Selector, SelectorError

Workload = CronJob | DaemonSet | Deployment | Job | ReplicaSet | ReplicationController | StatefulSet

WELL_KNOWN: Final[Mapping[str, type[Workload]]] = {
    "CronJob": CronJob,
    "DaemonSet": DaemonSet,
    "Deployment": Deployment,
    "Job": Job,
    "ReplicaSet": ReplicaSet,
    "ReplicationController": ReplicationController,
    "StatefulSet": StatefulSet,
}
"""Kinds that are known without their ``scale`` subresource, whatever their API version."""

WorkloadKey = tuple[str, str, str]
"""Kind, namespace, name; the API version does not count."""


class WorkloadView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A controller of pods: a well-known kind, or a custom one.

    Attributes:
        owner: Kind and name of its own controller; ``owner_version`` the API version of one that is not well known.
        selector: Of its pods, as text; None selects nothing.
        problem: Why it has no selector, empty when it has one.
        replicas: ``spec.replicas``.
        desired, ready: Of a DaemonSet, ``status.desiredNumberScheduled`` and ``status.numberReady``.
        scalable: Whether it has a ``scale`` subresource; of a custom kind, whether it counts as an owner.
        unreadable: Whether nobody can tell, as ``problem`` says; what it owns then has no topmost owner.
    """

    kind: str
    namespace: str
    name: str
    owner: tuple[str, str] | None = None
    owner_version: str = ""
    selector: str | None = None
    problem: str = ""
    replicas: int | None = None
    desired: int = 0
    ready: int = 0
    scalable: bool = False
    unreadable: bool = False

    @property
    def key(self) -> WorkloadKey:
        return self.kind, self.namespace, self.name


Workloads = Mapping[WorkloadKey, WorkloadView]


def view_of(kind: str, workload: Workload) -> WorkloadView:
    """Return what is needed of a well-known controller."""
    meta = workload.metadata
    owner = owner_of(meta.owner_references)
    selector, problem = None, ""
    try:
        found = selector_of(workload)
        selector = str(found) if found.selectable else None
    except SelectorError as error:
        problem = str(error)
    view = WorkloadView(
        kind,
        meta.namespace,
        meta.name,
        owner=None if owner is None else (owner.kind, owner.name),
        owner_version="" if owner is None or owner.kind in WELL_KNOWN else owner.api_version,
        selector=selector,
        problem=problem,
    )
    if isinstance(workload, DaemonSet):
        status = workload.status
        return msgspec.structs.replace(
            view, desired=status.desired_number_scheduled, ready=status.number_ready
        )
    if isinstance(workload, Deployment | ReplicaSet | ReplicationController | StatefulSet):
        return msgspec.structs.replace(view, replicas=workload.spec.replicas)
    return view


def selector_of(workload: Workload) -> Selector:
    """Return which pods are a well-known controller's. Raises: SelectorError."""
    if isinstance(workload, ReplicationController):
        return _of_labels(workload.spec.selector)
    if isinstance(workload, CronJob):
        # Upstream takes the labels of the pods that the jobs will have.
        return _of_labels(workload.spec.job_template.spec.template.metadata.labels)
    return Selector.from_object(workload.spec.selector)


def _of_labels(labels: dict[str, str] | None) -> Selector:
    """Return the selector of these labels; none at all select nothing, empty ones everything, as upstream has it."""
    return Selector.from_object(None if labels is None else LabelSelector(match_labels=labels))


def owner_of(owners: tuple[OwnerReference, ...] | None) -> OwnerReference | None:
    """Return the owner that is the controller; of several the last one, as upstream does."""
    return next((one for one in reversed(owners or ()) if one.controller), None)


class OwnerProblem(ValueError):
    """An owner that cannot be followed to the top; the message says why."""


class OwnedByNode(OwnerProblem):
    """A Node owns the pod: one of the kubelet's own, which no VPA can target."""


def topmost(workloads: Workloads, namespace: str, kind: str, name: str) -> tuple[str, str] | None:
    """Return kind and name of the last owner above a controller, itself included, that scales pods.

    None when none of them is of a well-known kind or has a scale.

    Raises: OwnerProblem.
    """
    found: tuple[str, str] | None = None
    seen: set[tuple[str, str]] = set()
    here: tuple[str, str] | None = (kind, name)
    while here is not None:
        if here in seen:
            raise OwnerProblem(f"cycle detected in ownership chain of {kind} {namespace}/{name}")
        if here[0] == "Node":
            raise OwnedByNode(f"Node {here[1]} is not a valid owner of pods that VPA updates")
        seen.add(here)
        view = workloads.get((here[0], namespace, here[1]))
        well_known = here[0] in WELL_KNOWN
        if view is None and well_known:
            raise OwnerProblem(f"{here[0]} {namespace}/{here[1]} does not exist")
        if view is not None and view.unreadable:
            raise OwnerProblem(f"{here[0]} {namespace}/{here[1]} cannot be read: {view.problem}")
        if well_known or (view is not None and view.scalable):
            found = here
        here = view.owner if view is not None else None
    return found
