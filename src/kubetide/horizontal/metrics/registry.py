"""The metric source types that can be read: one line a type.

A new type is one file with a reader (spec to ``Metric``) and a calculator, and one line here. An
HPA with a type that is not here is told so in its ``ScalingActive`` condition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubetide.horizontal.metrics import resource
from kubetide.horizontal.metrics.types import Metric, MetricFailure, Proposal, Tally, Tolerance
from kubetide.objects.hpa import MetricSpec


class Source(NamedTuple):
    """How a source type is read from the spec, and how it comes to a proposal."""

    read: Callable[[MetricSpec], Metric]
    propose: Callable[[Metric, Tally | str, int, Tolerance], Proposal | MetricFailure]


SOURCES = {
    "Resource": Source(resource.read_resource, resource.propose),
    "ContainerResource": Source(resource.read_container_resource, resource.propose),
}

_NOT_YET = ("Pods", "Object", "External")


def read_metric(spec: MetricSpec) -> Metric:
    """Reads one entry of ``spec.metrics``."""
    source = SOURCES.get(spec.type)
    return source.read(spec) if source else Metric(type=spec.type)


def propose(
    metric: Metric, tally: Tally | str, current: int, tolerance: Tolerance
) -> Proposal | MetricFailure:
    """Comes to a proposal from what is known, or says why not.

    Args:
        tally: What the pods add up to, or why there are no samples.
        current: ``spec.replicas`` of the target.
    """
    source = SOURCES.get(metric.type)
    if source is not None:
        return source.propose(metric, tally, current, tolerance)
    text = f'unknown metric source type "{metric.type}"'
    if metric.type in _NOT_YET:
        text += f" (not supported yet; supported are {', '.join(SOURCES)})"
    return MetricFailure("InvalidMetricSourceType", text, error_label="spec")
