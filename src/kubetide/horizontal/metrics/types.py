"""What the metric sources have in common: a metric as read from the spec, what is known of it, its proposal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kubetide.objects.hpa import MetricStatus

SampleKey = tuple[str, str]
"""Resource, and container; the container is empty for the sum over the pod."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One entry of ``spec.metrics``.

    Attributes:
        type: As in the spec.
        resource: Resource name, for resource metrics.
        container: Container name; empty for whole pods.
        utilization: Target in percent of the request, or None.
        average_milli: Target per pod in thousandths, or None.
        problem: Why the spec of the metric cannot be used; empty when it can.
    """

    type: str
    resource: str = ""
    container: str = ""
    utilization: int | None = None
    average_milli: int | None = None
    problem: str = ""

    @property
    def sample_key(self) -> SampleKey:
        return self.resource, self.container

    @property
    def fill_percent(self) -> int:
        """Percent of its request that a missing pod is taken to use when scaling down by utilization."""
        return max(100, self.utilization or 0)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far the ratio may lie above (up) or below (down) 1 without a change, inclusive."""

    up: float
    down: float

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Tally(NamedTuple):
    """Counts of pods by class, and sums over them in thousandths.

    Attributes:
        pods: All pods of the selector.
        ready: Pods that count in full; ``unready``, ``missing``, ``ignored`` likewise.
        answered: Samples that the metrics API gave for this HPA.
        samples: Samples left after those of ignored and unready pods are dropped.
        usage: Sum of ``samples``.
        matched_usage: Sum of those of known pods; ``matched`` is their number.
        requests: Requests of the pods behind ``matched``.
        missing_requests: Requests of the missing pods; ``unready_requests`` likewise.
        fill: What missing pods are taken to use when scaling down by utilization.
        problem: Why the requests cannot be known; empty when they can or play no part.
    """

    pods: int = 0
    ready: int = 0
    unready: int = 0
    missing: int = 0
    ignored: int = 0
    answered: int = 0
    samples: int = 0
    usage: int = 0
    matched: int = 0
    matched_usage: int = 0
    requests: int = 0
    missing_requests: int = 0
    unready_requests: int = 0
    fill: int = 0
    problem: str = ""


class Arithmetic(NamedTuple):
    """How a number of replicas came about.

    Attributes:
        replicas: The proposal.
        ratio: Current over target, first pass.
        filled_ratio: The same after missing and unready pods were filled in; None where none were.
        utilization: Percent of the request, None for average targets.
        average: Average per sample in thousandths.
    """

    replicas: int
    ratio: float
    filled_ratio: float | None
    utilization: int | None
    average: int


class Proposal(NamedTuple):
    """What one metric asks for."""

    replicas: int
    name: str
    status: MetricStatus
    arithmetic: Arithmetic


class MetricFailure(NamedTuple):
    """Why a metric proposes nothing.

    Attributes:
        reason: Of event and condition, such as ``FailedGetResourceMetric``.
        text: As the event says it.
        prefix: What the returned error puts before it.
        error_label: ``spec`` or ``internal``, for the metrics of the loop.
    """

    reason: str
    text: str
    prefix: str = ""
    error_label: str = "internal"
