"""Workloads from kube-state-metrics: whose pods are whose, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from kubetide.experiments.capture.prometheus.reading import Facts
from kubetide.experiments.capture.services import Workload
from kubetide.objects.base import Quantities
from kubetide.objects.meta import ApiObject, Key, LabelSelector, ObjectMeta
from kubetide.objects.node import Namespace, Taint
from kubetide.objects.pod import Container, PodSpec, PodTemplate, ResourceRequirements, Toleration
from kubetide.objects.statefulset import StatefulSet, StatefulSetSpec
from kubetide.objects.workload import DaemonSet, DaemonSetSpec, Deployment, DeploymentSpec
from kubetide.units.quantity import bytes_to_text, milli_to_text

FIELDS: Final = {"Deployment": "deployments", "StatefulSet": "stateful_sets", "DaemonSet": "daemon_sets"}
"""Kinds that a scenario can have, and what their objects are called in it."""

_RESOURCES: Final = {
    "cpu": "cpu",
    "memory": "memory",
    "pods": "pods",
    "ephemeral_storage": "ephemeral-storage",
    "nvidia_com_gpu": "nvidia.com/gpu",
    "amd_com_gpu": "amd.com/gpu",
}
"""Resources by what kube-state-metrics calls them; others cannot be read back."""


_NOBODY: Final = ("", "<none>")
"""How kube-state-metrics says that there is no owner."""


def quantities(amounts: Mapping[str, float]) -> Quantities:
    """Return amounts of resources as an object says them; cores and bytes as Prometheus has them."""
    found: Quantities = {}
    for name, amount in sorted(amounts.items()):
        if name == "cpu":
            found[name] = milli_to_text(round(amount * 1000))
        elif name in _RESOURCES:
            found[_RESOURCES[name]] = bytes_to_text(round(amount)) if name == "memory" else str(round(amount))
    return found


class Owners(NamedTuple):
    """Whose the pods are.

    Attributes:
        of: The workload of a pod; of a kind that is not in ``FIELDS`` its direct owner.
        alone: Pods that have no controller.
        guessed: How many ReplicaSets' Deployments are known by their names alone.
    """

    of: dict[Key, Workload]
    alone: set[Key]
    guessed: int


def owners_of(facts: Mapping[str, Facts], deployments: Iterable[Key]) -> Owners:
    """Return whose the pods are, from their owners and those of ReplicaSets."""
    names = set(deployments)
    sets = {(row[0], row[1]): (row[2], row[3]) for row in facts["replica set owner"]}
    of: dict[Key, Workload] = {}
    alone: set[Key] = set()
    guessed: set[Key] = set()
    for namespace, pod, kind, name in facts["pod owner"]:
        if kind in _NOBODY:
            alone.add((namespace, pod))
            continue
        of[namespace, pod] = kind, namespace, name
        if kind != "ReplicaSet":
            continue
        above, stem = sets.get((namespace, name), ("", "")), name.rpartition("-")[0]
        if above[0] == "Deployment":
            of[namespace, pod] = "Deployment", namespace, above[1]
        elif above[0] in _NOBODY and (namespace, stem) in names:
            guessed.add((namespace, name))
            of[namespace, pod] = "Deployment", namespace, stem
    return Owners(of, alone, len(guessed))


class Shape(NamedTuple):
    """What a pod is.

    Attributes:
        created: Unix seconds.
        containers: Image, requests and limits by the container's name.
    """

    created: float
    containers: tuple[Container, ...]


def shapes_of(facts: Mapping[str, Facts], owners: Owners) -> dict[Workload, list[Shape]]:
    """Return the pods of each workload that say what they ask for, the oldest first."""
    images: dict[Key, dict[str, str]] = {}
    for namespace, name, container, image in facts["container"]:
        images.setdefault((namespace, name), {})[container] = image
    amounts = {name: _amounts(facts[name]) for name in ("requests", "limits")}
    created = {(row[0], row[1]): seen.first for row, seen in facts["pod created"].items()}
    found: dict[Workload, list[Shape]] = {}
    for pod, workload in owners.of.items():
        asked, most = amounts["requests"].get(pod, {}), amounts["limits"].get(pod, {})
        names = sorted({*images.get(pod, {}), *asked, *most})
        if names and pod in created:
            containers = tuple(
                Container(
                    name=one,
                    image=images.get(pod, {}).get(one, one),
                    resources=ResourceRequirements(
                        requests=quantities(asked.get(one, {})) or None,
                        limits=quantities(most.get(one, {})) or None,
                    ),
                )
                for one in names
            )
            found.setdefault(workload, []).append(Shape(created[pod], containers))
    for shapes in found.values():
        shapes.sort(key=lambda shape: shape.created)
    return found


def _amounts(facts: Facts) -> dict[Key, dict[str, dict[str, float]]]:
    found: dict[Key, dict[str, dict[str, float]]] = {}
    for (namespace, pod, container, resource), seen in facts.items():
        found.setdefault((namespace, pod), {}).setdefault(container, {})[resource] = seen.first
    return found


def tolerations_of(
    facts: Mapping[str, Facts], owners: Owners, taints: Mapping[str, Iterable[Taint]]
) -> dict[Workload, list[Toleration]]:
    """Return what the pods of each workload tolerate, as far as the nodes that they were on show it."""
    found: dict[Workload, dict[str, Toleration]] = {}
    for namespace, pod, node in facts["pod node"]:
        workload = owners.of.get((namespace, pod))
        for taint in taints.get(node, ()) if workload else ():
            assert workload is not None
            toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            found.setdefault(workload, {})[f"{taint.key}={taint.value}:{taint.effect}"] = toleration
    return {workload: [one for _, one in sorted(there.items())] for workload, there in found.items()}


def workload_object(
    workload: Workload, replicas: int, shape: Shape, tolerations: Iterable[Toleration]
) -> ApiObject:
    """Return the object of a Deployment, StatefulSet or DaemonSet; its selector is made up, as no series shows it."""
    kind, namespace, name = workload
    labels = {"app": name}
    template = PodTemplate(
        metadata=ObjectMeta(labels=labels),
        spec=PodSpec(containers=shape.containers, tolerations=tuple(tolerations) or None),
    )
    meta = ObjectMeta(name=name, namespace=namespace)
    selector = LabelSelector(match_labels=labels)
    if kind == "Deployment":
        return Deployment(
            metadata=meta, spec=DeploymentSpec(replicas=replicas, selector=selector, template=template)
        )
    if kind == "StatefulSet":
        return StatefulSet(
            metadata=meta,
            spec=StatefulSetSpec(replicas=replicas, selector=selector, template=template, service_name=name),
        )
    return DaemonSet(metadata=meta, spec=DaemonSetSpec(selector=selector, template=template))


def namespaces_of(workloads: Iterable[Workload]) -> list[ApiObject]:
    """Return the namespaces of workloads."""
    return [
        Namespace(metadata=ObjectMeta(name=name)) for name in sorted({workload[1] for workload in workloads})
    ]


def changed(shapes: list[Shape]) -> bool:
    """Return whether the newest pod asks for something else than the oldest."""
    sizes = [[(one.name, msgspec.to_builtins(one.resources)) for one in shape.containers] for shape in shapes]
    return sizes[0] != sizes[-1]
