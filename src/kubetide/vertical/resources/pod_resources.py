"""The requests and limits that a VPA gives the containers of a pod, and the JSON patches that write them.

Source: vertical-pod-autoscaler 1.8.1, pkg/admission-controller/resource/pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kubetide.objects.base import Json
from kubetide.objects.pod import ResourceRequirements
from kubetide.objects.vpa import OFF, REQUESTS_AND_LIMITS, VerticalPodAutoscaler
from kubetide.vertical.resources.amounts import Amounts, proportional_limits
from kubetide.vertical.resources.capping import Capped, Running, capped_recommendation
from kubetide.vertical.resources.limit_ranges import NamespaceBounds
from kubetide.vertical.resources.policies import controlled_values, update_mode


@dataclass(slots=True)
class ContainerResources:
    """Requests and limits to write, and remarks on them for people; what is absent stays as it is."""

    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def recommended_resources(
    containers: Sequence[Running], vpa: VerticalPodAutoscaler, bounds: NamespaceBounds
) -> list[ContainerResources]:
    """Return what the VPA recommends for each container of a pod, in the pod's order.

    With mode ``Off`` that is nothing. Raises: QuantityError.
    """
    resources = [ContainerResources() for _ in containers]
    recommendation = vpa.status.recommendation
    if recommendation is None or update_mode(vpa.spec) == OFF:
        return resources
    policy = vpa.spec.resource_policy
    capped: dict[str, Capped] = {}
    for one in capped_recommendation(recommendation, policy, containers, bounds):
        capped.setdefault(one.container, one)
    defaults = bounds.container.default if bounds.container is not None else {}
    for found, container in zip(resources, containers, strict=True):
        if container.name not in capped:
            continue
        one = capped[container.name]
        found.requests, found.remarks = one.target, list(one.remarks)
        if controlled_values(policy, container.name) == REQUESTS_AND_LIMITS:
            found.limits, remarks = proportional_limits(
                container.requests, container.limits, one.target, defaults
            )
            found.remarks += remarks
        # Upstream drops a resource without a name, which nothing can request.
        found.requests.pop("", None)
        found.limits.pop("", None)
    return resources


# ── patches ─────────────────────────────────────────────────────────────────────────────────────


def add(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> Json:
    return {"op": "remove", "path": path, "value": None}


def annotation_path(name: str) -> str:
    return f"/metadata/annotations/{escaped(name)}"


def empty_annotations(annotations: Mapping[str, str] | None) -> list[Json]:
    """Return the patch that makes the map of annotations where there is none."""
    return [] if annotations is not None else [add("/metadata/annotations", {})]


def escaped(part: str) -> str:
    """Return a name as it stands in a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1")


def resource_patches(index: int, present: ResourceRequirements, desired: ContainerResources) -> list[Json]:
    """Return the patches that write a container's requests and limits, the maps around them first.

    An empty ``resources`` is added also where nothing is to be written into it, as upstream does.
    """
    at = f"/spec/containers/{index}/resources"
    patches = []
    if present.requests is None and present.limits is None:
        patches.append(add(at, {}))
    for side, there, amounts in (
        ("requests", present.requests, desired.requests),
        ("limits", present.limits, desired.limits),
    ):
        if there is None and amounts:
            patches.append(add(f"{at}/{side}", {}))
        patches += [add(f"{at}/{side}/{escaped(name)}", str(amounts[name])) for name in sorted(amounts)]
    return patches


def update_items(desired: ContainerResources) -> Iterable[str]:
    """Yield what ``vpaUpdates`` lists for a container."""
    yield from desired.remarks
    yield from (f"{name} request" for name in sorted(desired.requests))
    yield from (f"{name} limit" for name in sorted(desired.limits))
