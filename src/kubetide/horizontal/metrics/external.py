"""External metrics: series from outside the cluster, summed, from the external metrics API.

Source: horizontal controller v1.36.
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
from kubetide.horizontal.rules.shares import (
    proposal_by_share,
    proposal_by_value,
    sum_of_shares,
    sum_of_values,
)
from kubetide.objects.hpa import (
    ExternalMetricSource,
    ExternalMetricStatus,
    MetricSpec,
    MetricStatus,
)

_NO_VALUES = "no metrics returned from external metrics API"
_NO_TARGET = "invalid external metric source: neither a value target nor an average value target was set"


def read(spec: MetricSpec) -> Metric:
    """Return the metric of a ``type: External`` entry; of two targets the average counts."""
    source = spec.external or ExternalMetricSource()
    name = source.metric.name
    asked = asked_for(source.metric)
    average, problem = target_milli("averageValue", name, source.target.average_value)
    value, other = target_milli("value", name, source.target.value) if average is None else (None, "")
    problem = problem or other
    if average is None and value is None:
        problem = problem or _NO_TARGET
    return Metric(
        "External",
        average_milli=average,
        value_milli=value,
        problem=asked.problem or problem,
        title=f"external metric {name}({printed(source.metric.selector)})",
        identifier=source.metric,
        selector=asked.selector,
    )


def propose(metric: Metric, known: Known, current: int, tolerance: Tolerance) -> Proposal | MetricFailure:
    """Return the proposal by the sum of the series, in total or per replica."""
    if metric.problem:
        return _failure(metric, metric.problem)
    assert not isinstance(known, Tally), "no pods are tallied"
    assert metric.identifier is not None
    if not isinstance(known, str) and not known.series:
        known = _NO_VALUES
    if isinstance(known, str):
        shown = printed(metric.identifier.selector)
        return _failure(
            metric, f"unable to get external metric {metric.namespace}/{metric.name}/{shown}: {known}"
        )
    if metric.average_milli is not None:
        found: Arithmetic | str = proposal_by_share(
            sum_of_shares(known.series), known, metric.average_milli, tolerance, saturating=True
        )
    else:
        value = sum_of_values(known.series)
        found = proposal_by_value(value, known, current, metric.value_milli or 0, tolerance)
    if isinstance(found, str):
        return _failure(metric, found)
    status = ExternalMetricStatus(metric=metric.identifier, current=value_status(metric, found))
    return Proposal(found.replicas, metric.title, MetricStatus(type="External", external=status), found)


def _failure(metric: Metric, text: str) -> MetricFailure:
    name = metric.name
    prefix = f"failed to get {name} external metric value: "
    if metric.average_milli is not None:
        prefix += f"failed to get {name} external metric: "
    elif metric.value_milli is not None:
        prefix += f"failed to get external metric {name}: "
    return MetricFailure("FailedGetExternalMetric", text, prefix)
