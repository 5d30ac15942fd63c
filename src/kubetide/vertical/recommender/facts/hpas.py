"""Resources that an HPA scales on by utilization: VPA leaves them unchanged.

Utilization is usage divided by the request. A VPA that changes the request of such a resource changes the utilization,
so the HPA changes the number of replicas, so the usage of each pod changes, and the VPA changes the request again.
A target of an absolute value (``AverageValue``) does not move with the request, and is no conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubetide.objects.hpa import CrossVersionObjectReference, HorizontalPodAutoscaler, MetricSpec

_UTILIZATION = "Utilization"

TargetKey = tuple[str, str, str, str]
"""Namespace, API group, kind and name of what is scaled; the API version does not count."""


class LeftResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource that a VPA leaves to an HPA; ``container`` is empty for all containers."""

    hpa: str
    resource: str
    container: str = ""

    def concerns(self, container: str, resource: str) -> bool:
        """Return whether it covers this resource of this container."""
        return self.resource == resource and self.container in {"", container}


class HpaView(msgspec.Struct, frozen=True):
    """An HPA as the recommender sees it: its target, and the resources that it scales on by utilization."""

    namespace: str
    name: str
    target: TargetKey
    left: tuple[LeftResource, ...]


def target_key(namespace: str, ref: CrossVersionObjectReference) -> TargetKey:
    """Return the key of a target."""
    return namespace, ref.api_version.rpartition("/")[0], ref.kind, ref.name


def hpa_view(hpa: HorizontalPodAutoscaler) -> HpaView:
    """Return the part of an HPA that the recommender reads."""
    meta, spec = hpa.metadata, hpa.spec
    found = [one for metric in spec.metrics or () for one in _left(meta.name, metric)]
    if not spec.metrics:
        # What the API server fills in.
        found = [LeftResource(meta.name, "cpu")]
    return HpaView(
        meta.namespace,
        meta.name,
        target_key(meta.namespace, spec.scale_target_ref),
        tuple(dict.fromkeys(found)),
    )


def _left(hpa: str, metric: MetricSpec) -> Iterable[LeftResource]:
    resource, container = metric.resource, metric.container_resource
    if resource is not None and resource.target.type == _UTILIZATION:
        yield LeftResource(hpa, resource.name)
    if container is not None and container.target.type == _UTILIZATION:
        yield LeftResource(hpa, container.name, container.container)


def left_by_target(hpas: Iterable[HpaView]) -> Mapping[TargetKey, tuple[LeftResource, ...]]:
    """Return the resources left to HPAs, by target, ordered by name."""
    found: dict[TargetKey, list[LeftResource]] = {}
    for one in sorted(hpas, key=lambda view: (view.namespace, view.name)):
        if one.left:
            found.setdefault(one.target, []).extend(one.left)
    return {target: tuple(left) for target, left in found.items()}


def message(left: Iterable[LeftResource]) -> str:
    """Return the condition's message for resources left to HPAs; empty for none."""
    said = [
        f"HorizontalPodAutoscaler {one.hpa} scales on the utilization of {one.resource}"
        + (f" of container {one.container}" if one.container else "")
        for one in left
    ]
    return f"{'; '.join(said)}: no recommendation is made of it" if said else ""
