"""The known metric source types: one line each.

A new type is one file with a reader (spec to ``Metric``) and a calculator, and one line here. An
HPA with a type that is not here says so in its ``ScalingActive`` condition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from kubetide.horizontal.metrics import external, objects, pods, resource
from kubetide.horizontal.metrics.types import Known, Metric, MetricFailure, Proposal, Tolerance
from kubetide.objects.hpa import MetricSpec


class Source(NamedTuple):
    """How a source type is read from the spec, and how its proposal is computed."""

    read: Callable[[MetricSpec], Metric]
    propose: Callable[[Metric, Known, int, Tolerance], Proposal | MetricFailure]


SOURCES = {
    "Resource": Source(resource.read_resource, resource.propose),
    "ContainerResource": Source(resource.read_container_resource, resource.propose),
    "Pods": Source(pods.read, pods.propose),
    "Object": Source(objects.read, objects.propose),
    "External": Source(external.read, external.propose),
}


def read_metric(spec: MetricSpec, namespace: str, minor: int) -> Metric:
    """Return the metric of one entry of ``spec.metrics`` of an HPA in the namespace."""
    source = SOURCES.get(spec.type)
    return replace(source.read(spec), namespace=namespace, minor=minor) if source else Metric(type=spec.type)


def propose(metric: Metric, known: Known, current: int, tolerance: Tolerance) -> Proposal | MetricFailure:
    """Return the proposal of a metric, or why there is none.

    Args:
        known: What the pods add up to or what was measured elsewhere; or why nothing is known.
        current: ``spec.replicas`` of the target.
    """
    source = SOURCES.get(metric.type)
    if source is not None:
        return source.propose(metric, known, current, tolerance)
    text = f'unknown metric source type "{metric.type}"'
    return MetricFailure("InvalidMetricSourceType", text, error_label="spec")
