"""Pods that the autoscaler builds from a template: defaults that the API server sets in a pod, but not in a template."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubetide.objects.pod import Container, PodSpec

MOST_PODS: Final = 100_000
"""More pods than any cluster has nodes for by one object; a number beyond it is taken for a mistake."""


def with_default_requests(spec: PodSpec) -> PodSpec:
    """Return the spec with the limit as request where a container, or the pod itself, has a limit and no request.

    The pod's own limit counts only for what no container asks for. Source: Kubernetes v1.36, SetDefaults_Pod.
    """
    containers, init = _defaulted(spec.containers), _defaulted(spec.init_containers)
    if containers is not spec.containers or init is not spec.init_containers:
        spec = replace(spec, containers=containers, init_containers=init)
    level = spec.resources
    if level is None or not level.limits:
        return spec
    asked = [level.requests, *(one.resources.requests for one in (*(containers or ()), *(init or ())))]
    left = {
        name: amount
        for name, amount in level.limits.items()
        if _at_pod_level(name) and not any(name in (one or ()) for one in asked)
    }
    if not left:
        return spec
    return replace(spec, resources=replace(level, requests={**left, **(level.requests or {})}))


def with_host_ports(spec: PodSpec) -> PodSpec:
    """Return the spec with each port as host port, unless one is set, where the pod uses the host's network.

    So no two such pods share a node. Source: Kubernetes v1.36, SetDefaults_Pod.
    """
    if not spec.host_network:
        return spec
    return replace(
        spec,
        containers=_on_host(spec.containers),
        init_containers=_on_host(spec.init_containers),
    )


def _on_host(containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        replace(
            one,
            ports=tuple(
                port if port.host_port else replace(port, host_port=port.container_port) for port in one.ports
            ),
        )
        if one.ports
        else one
        for one in containers
    )


def _at_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def _defaulted(containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
    found = tuple(map(_with_requests, containers or ()))
    return (
        found if any(new is not old for new, old in zip(found, containers or (), strict=True)) else containers
    )


def _with_requests(container: Container) -> Container:
    requests, limits = container.resources.requests or {}, container.resources.limits or {}
    if all(name in requests for name in limits):
        return container
    return replace(container, resources=replace(container.resources, requests={**limits, **requests}))
