"""Pods metrics: one value of each pod of the target, from the custom metrics API.

Source: horizontal controller v1.36. Readiness plays no part, as for every resource but CPU; pods
without a value are filled in as for averages of resources.
"""

from __future__ import annotations

from kubetide.horizontal.metrics.identifiers import asked_for, target_milli, value_status
from kubetide.horizontal.metrics.types import Known, Metric, MetricFailure, Proposal, Reading, Tolerance
from kubetide.horizontal.rules.proposal import proposal_by_average
from kubetide.objects.hpa import (
    MetricSpec,
    MetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
)

_NO_VALUES = "no metrics returned from custom metrics API"


def read(spec: MetricSpec) -> Metric:
    """Return the metric of a ``type: Pods`` entry; as upstream, a target without an average counts as 0."""
    source = spec.pods or PodsMetricSource()
    name = source.metric.name
    asked = asked_for(source.metric)
    target, problem = target_milli("averageValue", name, source.target.average_value)
    return Metric(
        "Pods",
        average_milli=target or 0,
        problem=asked.problem or problem,
        title=f"pods metric {name}",
        identifier=source.metric,
        selector=asked.selector,
    )


def propose(metric: Metric, known: Known, current: int, tolerance: Tolerance) -> Proposal | MetricFailure:
    """Return the proposal by the average over the pods."""
    if metric.problem:
        return _failure(metric.problem)
    assert not isinstance(known, Reading), "pods are tallied"
    if not isinstance(known, str) and not known.answered:
        known = _NO_VALUES
    if isinstance(known, str):
        return _failure(f"unable to get metric {metric.name}: {known}")
    found = proposal_by_average(known, current, metric.average_milli or 0, tolerance)
    if isinstance(found, str):
        return _failure(found)
    assert metric.identifier is not None
    status = PodsMetricStatus(metric=metric.identifier, current=value_status(metric, found))
    return Proposal(found.replicas, metric.title, MetricStatus(type="Pods", pods=status), found)


def _failure(text: str) -> MetricFailure:
    return MetricFailure("FailedGetPodsMetric", text, "failed to get pods metric value: ")
