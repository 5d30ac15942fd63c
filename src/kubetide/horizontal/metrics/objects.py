"""Object metrics: one value of one Kubernetes object, from the custom metrics API.

Source: horizontal controller v1.36; that the error names object and namespace in this order is its too.
"""

from __future__ import annotations

from kubetide.horizontal.metrics.identifiers import asked_for, printed, target_milli, value_status
from kubetide.horizontal.metrics.types import (
    Arithmetic,
    Known,
    Metric,
    MetricFailure,
    Proposal,
    Tally,
    Tolerance,
)
from kubetide.horizontal.rules.shares import proposal_by_share, proposal_by_value
from kubetide.objects.hpa import MetricSpec, MetricStatus, ObjectMetricSource, ObjectMetricStatus

_NO_TARGET = "invalid object metric source: neither a value target nor an average value target was set"


def read(spec: MetricSpec) -> Metric:
    """Return the metric of a ``type: Object`` entry; with both targets set, the target's type decides."""
    source = spec.object or ObjectMetricSource()
    name, target = source.metric.name, source.target
    asked = asked_for(source.metric)
    average = value = None
    problem = _NO_TARGET
    title = f"external metric {name}({printed(source.metric.selector)})"  # upstream's words for averages
    if target.type == "Value" and target.value is not None:
        value, problem = target_milli("value", name, target.value)
        title = f"{source.described_object.kind} metric {name}"
    elif target.type == "AverageValue" and target.average_value is not None:
        average, problem = target_milli("averageValue", name, target.average_value)
    return Metric(
        "Object",
        average_milli=average,
        value_milli=value,
        problem=asked.problem or problem,
        title=title,
        identifier=source.metric,
        selector=asked.selector,
        described=source.described_object,
    )


def propose(metric: Metric, known: Known, current: int, tolerance: Tolerance) -> Proposal | MetricFailure:
    """Return the proposal by the object's value, in total or per replica."""
    if metric.problem:
        return MetricFailure("FailedGetObjectMetric", metric.problem, _PREFIX)
    assert not isinstance(known, Tally), "no pods are tallied"
    assert metric.described is not None
    assert metric.identifier is not None
    if isinstance(known, str):
        about = metric.described
        # v1.36 mixes up the order of its words.
        where = f": {about.kind} on {metric.namespace} {about.name}/"
        if metric.minor >= 37:
            where = f" on {about.kind} {metric.namespace}/{about.name}: "
        return _failure(metric, f"unable to get metric {metric.name}{where}{known}")
    [value] = known.series
    if metric.average_milli is not None:
        found: Arithmetic | str = proposal_by_share(
            value, known, metric.average_milli, tolerance, saturating=False
        )
    else:
        found = proposal_by_value(value, known, current, metric.value_milli or 0, tolerance)
    if isinstance(found, str):
        return _failure(metric, found)
    status = ObjectMetricStatus(
        described_object=metric.described, metric=metric.identifier, current=value_status(metric, found)
    )
    return Proposal(found.replicas, metric.title, MetricStatus(type="Object", object=status), found)


_PREFIX = "failed to get object metric value: "


def _failure(metric: Metric, text: str) -> MetricFailure:
    more = "" if metric.average_milli is None else f"failed to get {metric.name} object metric: "
    return MetricFailure("FailedGetObjectMetric", text, _PREFIX + more)
