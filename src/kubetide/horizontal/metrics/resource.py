"""Resource and ContainerResource metrics: usage from the resource metrics API.

Texts are upstream's (horizontal controller v1.36), as operators match on them in conditions and events.
"""

from __future__ import annotations

from kubetide.horizontal.metrics.types import (
    Arithmetic,
    Known,
    Metric,
    MetricFailure,
    Proposal,
    Reading,
    Tolerance,
)
from kubetide.horizontal.rules.proposal import proposal_by_average, proposal_by_utilization
from kubetide.objects.hpa import (
    ContainerResourceMetricSource,
    ContainerResourceMetricStatus,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ResourceMetricSource,
    ResourceMetricStatus,
)
from kubetide.units.quantity import Quantity, QuantityError, bytes_to_text, milli_to_text

_NO_TARGET = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"


def read_resource(spec: MetricSpec) -> Metric:
    """Return the metric of a ``type: Resource`` entry."""
    source = spec.resource or ResourceMetricSource()
    return _read("Resource", source.name, "", source.target)


def read_container_resource(spec: MetricSpec) -> Metric:
    """Return the metric of a ``type: ContainerResource`` entry."""
    source = spec.container_resource or ContainerResourceMetricSource()
    return _read("ContainerResource", source.name, source.container, source.target)


def _read(source_type: str, resource: str, container: str, target: MetricTarget) -> Metric:
    """Upstream's title leaves "container" out for averages."""
    if target.average_value is not None:
        title, problem, average = f"{resource} resource", "", None
        try:
            average = Quantity.parse(target.average_value).milli_value()
        except QuantityError as error:
            problem = f"target.averageValue of {resource}: {error}"
        return Metric(source_type, resource, container, average_milli=average, problem=problem, title=title)
    what = "container resource" if container else "resource"
    return Metric(
        source_type,
        resource,
        container,
        utilization=target.average_utilization,
        problem=_NO_TARGET if target.average_utilization is None else "",
        title=f"{resource} {what} utilization (percentage of request)",
    )


def propose(metric: Metric, known: Known, current: int, tolerance: Tolerance) -> Proposal | MetricFailure:
    """Return the proposal by the pods' tally; a text in its place is the error of the samples."""
    if metric.problem:
        return _failure(metric, metric.problem)
    assert not isinstance(known, Reading), "pods are tallied"
    if not isinstance(known, str) and not known.answered:
        known = "no metrics returned from resource metrics API"
    if isinstance(known, str):
        found: Arithmetic | str = f"unable to get metrics for resource {metric.resource}: {known}"
    elif metric.average_milli is not None:
        found = proposal_by_average(known, current, metric.average_milli, tolerance)
    else:
        found = proposal_by_utilization(known, current, metric.utilization or 0, tolerance)
    if isinstance(found, str):
        what = "utilization" if metric.average_milli is None else "usage"
        return _failure(metric, f"failed to get {metric.resource} {what}: {found}")
    return present(metric, found)


def present(metric: Metric, arithmetic: Arithmetic) -> Proposal:
    """Return the numbers in the form of the status."""
    return Proposal(
        arithmetic.replicas,
        metric.title,
        status_of(metric, arithmetic.average, arithmetic.utilization),
        arithmetic,
    )


def _failure(metric: Metric, text: str) -> MetricFailure:
    if metric.type == "ContainerResource":
        return MetricFailure(
            "FailedGetContainerResourceMetric",
            text,
            f"failed to get {metric.container} container metric value: ",
        )
    return MetricFailure(
        "FailedGetResourceMetric", text, f"failed to get {metric.resource} resource metric value: "
    )


def status_of(metric: Metric, average: int, utilization: int | None) -> MetricStatus:
    """Return the entry of ``status.currentMetrics``: the values of the first pass."""
    printed = _memory_text if metric.resource == "memory" else milli_to_text
    value = MetricValueStatus(average_value=printed(average), average_utilization=utilization)
    if metric.type == "ContainerResource":
        status = ContainerResourceMetricStatus(
            name=metric.resource, container=metric.container, current=value
        )
        return MetricStatus(type=metric.type, container_resource=status)
    return MetricStatus(type=metric.type, resource=ResourceMetricStatus(name=metric.resource, current=value))


def _memory_text(milli: int) -> str:
    """Print whole multiples of 1024 in binary form, all else in decimal form."""
    return milli_to_text(milli) if milli % 1_024_000 else bytes_to_text(milli // 1000)
