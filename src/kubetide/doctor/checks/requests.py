"""Workloads without requests: the scheduler and the node loop count them as zero."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.checks.hpa_requests import requests
from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.objects.pod import PodSpec

_RESOURCES = ("cpu", "memory")


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the workloads whose containers lack CPU or memory requests; those of one owner once."""
    for _, workload in sorted(snapshot.workloads.items()):
        if workload.owner is not None or workload.replicas == 0:
            continue
        yield from _finding(workload.title, workload.template.spec)
    for pod in snapshot.pods:
        if not pod.metadata.owner_references:
            yield from _finding(f"Pod {pod.metadata.namespace}/{pod.metadata.name}", pod.spec)


def _finding(title: str, spec: PodSpec) -> Iterator[Finding]:
    whole = {} if spec.resources is None else (spec.resources.requests or {})
    lacking = [
        f"{resource} in {', '.join(names)}"
        for resource in _RESOURCES
        if resource not in whole
        and (names := [one.name for one in spec.containers or () if not requests(one, resource)])
    ]
    if not lacking:
        return
    yield Finding(
        check="requests",
        severity="warning",
        object=title,
        seen=f"no request for {' and '.join(lacking)}",
        why="nodes are bought, and found unneeded, by requests: such pods count as nothing and crowd a node",
        fix="set resources.requests in the pod template; a VPA in mode Off says what to ask for",
    )
