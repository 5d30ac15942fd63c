"""Workloads of all kinds in one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubetide.objects.batch import Job
from kubetide.objects.meta import LabelSelector, ObjectMeta, OwnerReference, controller_of
from kubetide.objects.pod import PodTemplate
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController

Made = Deployment | ReplicaSet | StatefulSet | DaemonSet | ReplicationController | Job

PLURALS: Mapping[str, str] = {
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "ReplicationController": "replicationcontrollers",
    "Job": "jobs",
}
"""The plural name of each kind of workload that is read."""


class Workload(NamedTuple):
    """What makes pods of one template.

    Attributes:
        replicas: How many are asked for; None for a DaemonSet, which has one a node.
        owner: The workload that made this one; None for one that a person made.
    """

    kind: str
    metadata: ObjectMeta
    template: PodTemplate
    selector: LabelSelector | None
    replicas: int | None
    owner: OwnerReference | None

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind} {self.metadata.namespace}/{self.metadata.name}"


def workloads_of(objects: Iterable[Made]) -> dict[tuple[str, str, str], Workload]:
    """Return the workloads by kind, namespace and name."""
    found = (_workload(one) for one in objects)
    return {(one.kind, one.metadata.namespace, one.metadata.name): one for one in found}


def _workload(made: Made) -> Workload:
    spec = made.spec
    selector = spec.selector
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    return Workload(
        kind=type(made).__name__,
        metadata=made.metadata,
        template=spec.template or PodTemplate(),
        selector=selector,
        replicas=_replicas(made),
        owner=controller_of(made.metadata),
    )


def _replicas(made: Made) -> int | None:
    if isinstance(made, DaemonSet):
        return None
    # The API server writes the default of 1; a manifest may leave it out.
    asked = made.spec.parallelism if isinstance(made, Job) else made.spec.replicas
    return 1 if asked is None else asked
