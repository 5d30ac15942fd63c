"""HPAs whose metrics cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kubetide.doctor.checks.hpa_requests import without_request
from kubetide.doctor.checks.hpa_shared_target import target_of
from kubetide.doctor.finding import Finding, Severity, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.horizontal.explain.ways_out import OF_PODS, way_out_of_metric
from kubetide.objects.hpa import HorizontalPodAutoscaler, MetricSpec
from kubetide.objects.kinds import HPAS

_MEANT = {"ScalingDisabled"}
"""Reasons of ``ScalingActive=False`` that a person chose."""

_AMBIGUOUS: Final = "AmbiguousSelector"
"""The reason of several HPAs over the same pods."""

_FIX: Final = "correct its metrics: kubetide explain hpa shows each with its problem"
_FIX_UNPLACED: Final = "see why its pods have no node: without one they have no usage that could be measured"
_FIX_AMBIGUOUS: Final = (
    "give the workloads selectors of which none matches the pods of another, or scale one of them only"
)


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the HPAs whose controller cannot read a metric, and those that name a missing container."""
    targets = Counter(map(target_of, snapshot.hpas))
    for hpa in snapshot.every_hpa:
        for metric in hpa.spec.metrics or ():
            yield from _container(snapshot, hpa, metric)
        failed = next(
            (
                one
                for one in hpa.status.conditions or ()
                if one.type == "ScalingActive" and one.status == "False" and one.reason not in _MEANT
            ),
            None,
        )
        if failed is None or _lacks_request(snapshot, hpa, failed.message or ""):
            continue
        ambiguous = failed.reason == _AMBIGUOUS
        fix = _FIX_AMBIGUOUS if ambiguous else _fix(snapshot, hpa, failed.reason or "", failed.message or "")
        # Several HPAs on one target are what hpa-shared-target reports.
        if not ambiguous or targets[target_of(hpa)] < 2:
            yield _finding(hpa, f"{failed.reason}: {failed.message}", fix)


def _fix(snapshot: Snapshot, hpa: HorizontalPodAutoscaler, reason: str, message: str) -> str:
    target = hpa.spec.scale_target_ref
    if reason in OF_PODS and (target.kind, hpa.metadata.namespace, target.name) in snapshot.without_nodes:
        return _FIX_UNPLACED
    return way_out_of_metric(reason, message) or _FIX


def _lacks_request(snapshot: Snapshot, hpa: HorizontalPodAutoscaler, message: str) -> bool:
    """Return whether the metric fails for a request that its workload lacks, which ``hpa-requests`` reports."""
    return any(
        f"missing request for {resource}" in message for _, resource, _ in without_request(snapshot, hpa)
    )


def _container(snapshot: Snapshot, hpa: HorizontalPodAutoscaler, metric: MetricSpec) -> Iterator[Finding]:
    asked, target = metric.container_resource, hpa.spec.scale_target_ref
    workload = snapshot.workloads.get((target.kind, hpa.metadata.namespace, target.name))
    if asked is None or workload is None:
        return
    there = [one.name for one in workload.template.spec.containers or ()]
    if asked.container not in there:
        yield _finding(
            hpa,
            f"its metric reads container {asked.container}, which {workload.title} does not have",
            f"name one of {', '.join(there) or 'its containers'}",
        )


def _finding(hpa: HorizontalPodAutoscaler, seen: str, fix: str) -> Finding:
    severity: Severity = "critical"
    return Finding(
        check="hpa-metric",
        severity=severity,
        object=title_of(hpa, HPAS),
        seen=seen,
        why="a metric that cannot be read holds scale-downs back, and with no other metric nothing is scaled",
        fix=fix,
    )
