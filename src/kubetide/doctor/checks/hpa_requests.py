"""HPAs by utilization over containers that request nothing."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import Workload
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import HPAS
from kubetide.objects.pod import Container, PodSpec


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield, per HPA and resource, the containers without the request that utilization is a share of.

    Source: horizontal controller v1.36: utilization is usage over the requests of all containers, and a missing
    request of one fails the metric; a pod-level request stands for all of them (KEP-2837).
    """
    for hpa in snapshot.every_hpa:
        for workload, resource, lacking in without_request(snapshot, hpa):
            yield Finding(
                check="hpa-requests",
                severity="critical",
                object=title_of(hpa, HPAS),
                seen=f"it scales by {resource} utilization, and {workload.title} has no {resource} request in "
                f"container {', '.join(lacking)}",
                why="utilization is a share of the request: without it the metric fails, and the HPA never scales on it",
                fix=f"set resources.requests.{resource} of container {', '.join(lacking)}, or use a target of type "
                "AverageValue",
            )


def without_request(
    snapshot: Snapshot, hpa: HorizontalPodAutoscaler
) -> Iterator[tuple[Workload, str, list[str]]]:
    """Yield, per metric by utilization, the HPA's target, the resource, and the containers that do not request it."""
    target = hpa.spec.scale_target_ref
    workload = snapshot.workloads.get((target.kind, hpa.metadata.namespace, target.name))
    if workload is None:
        return
    for resource, container in utilization_of(hpa):
        if lacking := _lacking(workload.template.spec, resource, container):
            yield workload, resource, lacking


def utilization_of(hpa: HorizontalPodAutoscaler) -> Iterator[tuple[str, str]]:
    """Yield resource and container (empty for all) of each metric by utilization."""
    if not hpa.spec.metrics:
        # The API server writes this default; a manifest leaves it out.
        yield "cpu", ""
    for metric in hpa.spec.metrics or ():
        if metric.resource is not None and metric.resource.target.type == "Utilization":
            yield metric.resource.name, ""
        one = metric.container_resource
        if one is not None and one.target.type == "Utilization":
            yield one.name, one.container


def _lacking(spec: PodSpec, resource: str, container: str) -> list[str]:
    if not container and spec.resources is not None and resource in (spec.resources.requests or {}):
        return []
    return [
        one.name
        for one in (spec.containers or ())
        if (not container or one.name == container) and not requests(one, resource)
    ]


def requests(container: Container, resource: str) -> bool:
    """Return whether a container requests the resource; a limit alone becomes the request."""
    asked = container.resources
    return resource in (asked.requests or {}) or resource in (asked.limits or {})
