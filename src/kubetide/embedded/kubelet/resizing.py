"""Resizing a pod in place: whether the new size fits, and what is then written. All of it is pure.

Source: KEP-1287; kubelet v1.36, reasons and messages of ``PodResizePending``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.pod import Container, Pod, PodSpec, acting_containers
from kubetide.units.time import Instant, format_rfc3339

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"

_RESOURCES = ("cpu", "memory")


class Refusal(NamedTuple):
    """Why a resize is not carried out: not now, or never on this node."""

    reason: Literal["Deferred", "Infeasible"]
    message: str


def refusal(
    asked: Mapping[str, int], held: Mapping[str, int], used: Mapping[str, int], allocatable: Mapping[str, int]
) -> Refusal | None:
    """Return why a pod cannot have what it asks for, None when it can.

    Args:
        asked: What the pod is to have, milli-CPU and bytes.
        held: What it has; a resource of which it asks for no more is always granted.
        used: What the other pods of the node have.
        allocatable: What the node offers to pods.
    """
    more = [name for name in _RESOURCES if asked.get(name, 0) > held.get(name, 0)]
    for name in more:
        requested, there = asked[name], allocatable.get(name, 0)
        if requested > there:
            text = f"Node didn't have enough capacity: {name}, requested: {requested}, capacity: {there}"
            return Refusal("Infeasible", text)
    for name in more:
        requested, there, taken = asked[name], allocatable.get(name, 0), used.get(name, 0)
        if requested + taken > there:
            text = (
                f"Node didn't have enough resource: {name}, requested: {requested}, used: {taken}, "
                f"capacity: {there}"
            )
            return Refusal("Deferred", text)
    return None


def same_resources(a: PodSpec, b: PodSpec) -> bool:
    """Return whether two specs of one pod give its containers, and the pod as a whole, the same resources."""
    return _resources(a) == _resources(b)


def _resources(spec: PodSpec) -> list[object]:
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return [spec.resources, *(container.resources for container in containers)]


def restarted(old: PodSpec, new: PodSpec) -> list[str]:
    """Name the containers that must be started again for their resources to take effect."""
    return [
        container.name
        for before, container in zip(old.containers or (), new.containers or (), strict=True)
        if any(
            policy.restart_policy == "RestartContainer" and _differs(before, container, policy.resource_name)
            for policy in container.resize_policy or ()
        )
    ]


def _differs(a: Container, b: Container, name: str) -> bool:
    pairs = ((a.resources.requests, b.resources.requests), (a.resources.limits, b.resources.limits))
    return any((one or {}).get(name) != (other or {}).get(name) for one, other in pairs)


def conditions(
    old: list[Json], refused: Refusal | None, *, in_progress: bool, generation: int, now: Instant
) -> list[Json]:
    """Return the pod's conditions with those of a resize as they are now; one that stays keeps its time."""
    result = [condition for condition in old if condition["type"] not in {PENDING, IN_PROGRESS}]
    expected: list[Json] = []
    if refused is not None:
        expected.append({"type": PENDING, "reason": refused.reason, "message": refused.message})
    if in_progress:
        expected.append({"type": IN_PROGRESS})
    since = {condition["type"]: condition.get("lastTransitionTime") for condition in old}
    for condition in expected:
        at = since.get(condition["type"]) or format_rfc3339(now)
        extra = {"status": "True", "observedGeneration": generation, "lastTransitionTime": at}
        result.append({**condition, **extra})
    return result


def with_resources(statuses: list[Json], allocated: PodSpec, actual: PodSpec) -> list[Json]:
    """Return container statuses with what each was granted, and what it runs with."""
    granted, running = _by_name(allocated), _by_name(actual)
    result = []
    for status in statuses:
        name = status["name"]
        entry = {**status, "resources": msgspec.to_builtins(running[name].resources)}
        requests = granted[name].resources.requests
        if requests:
            entry["allocatedResources"] = requests
        result.append(entry)
    return result


def _by_name(spec: PodSpec) -> dict[str, Container]:
    return {c.name: c for c in (*(spec.containers or ()), *(spec.init_containers or ()))}


def granted_before(pod: Pod) -> tuple[PodSpec, PodSpec]:
    """Return what a running pod was granted and what it runs with, by its status."""
    statuses = {
        status.name: status
        for status in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    }

    def granted(container: Container) -> Container:
        status = statuses.get(container.name)
        if status is None or status.allocated_resources is None:
            return container
        resources = msgspec.structs.replace(container.resources, requests=status.allocated_resources)
        return msgspec.structs.replace(container, resources=resources)

    spec, acting = pod.spec, acting_containers(pod)
    actual = msgspec.structs.replace(spec, containers=acting)
    allocated = msgspec.structs.replace(spec, containers=tuple(granted(c) for c in acting or ()))
    return allocated, actual
