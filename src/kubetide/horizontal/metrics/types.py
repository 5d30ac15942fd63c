"""Types shared by the metric sources: a metric of the spec, its facts in a tick, its proposal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from kubetide.objects.hpa import CrossVersionObjectReference, MetricIdentifier, MetricStatus
from kubetide.objects.minor_version import OLDEST

SampleKey = tuple[str, str]
"""Resource, and container; the container is empty for the sum over the pod."""


class Question(NamedTuple):
    """A query to a custom or external metrics API; HPAs with equal queries share the answer.

    Attributes:
        source: What is measured: pods, one object, or something outside the cluster.
        selector: Label selector of the metric's own labels.
        pods: Label selector of the pods, for ``pods``.
        api_version, kind, name: The object, for ``object``.
    """

    source: Literal["pods", "object", "external"]
    namespace: str
    metric: str
    selector: str = ""
    pods: str = ""
    api_version: str = ""
    kind: str = ""
    name: str = ""


class Metric(msgspec.Struct, frozen=True):
    """One entry of ``spec.metrics``.

    Attributes:
        type: As in the spec.
        resource: Resource name, for resource metrics.
        container: Container name; empty for whole pods.
        utilization: Target in percent of the request, or None.
        average_milli: Target per pod in thousandths, or None.
        problem: Why the spec of the metric cannot be used; empty when it can.
        title: As conditions and events name the metric.
        namespace: Of the HPA.
        value_milli: Target in all, in thousandths, or None.
        identifier: Name and selector as in the spec, for custom and external metrics.
        selector: Text form of the selector of the metric's own labels.
        described: The object that is measured, for ``Object``.
        minor: The minor version of Kubernetes whose words errors have.
    """

    type: str
    resource: str = ""
    container: str = ""
    utilization: int | None = None
    average_milli: int | None = None
    problem: str = ""
    title: str = ""
    namespace: str = ""
    value_milli: int | None = None
    identifier: MetricIdentifier | None = None
    selector: str = ""
    described: CrossVersionObjectReference | None = None
    minor: int = OLDEST

    @property
    def sample_key(self) -> SampleKey:
        return self.resource, self.container

    def question(self, pods: str) -> Question | None:
        """Return the query to a custom or external metrics API; None for other metrics.

        Args:
            pods: Label selector of the target's pods.
        """
        if self.identifier is None or self.problem:
            return None
        if self.type == "Pods":
            return Question("pods", self.namespace, self.name, self.selector, pods)
        if self.described is None:
            return Question("external", self.namespace, self.name, self.selector)
        about = self.described
        # Of namespaces upstream measures the HPA's own, whatever name the spec gives.
        own = about.kind == "Namespace" and "/" not in about.api_version
        return Question(
            "object",
            self.namespace,
            self.name,
            self.selector,
            api_version=about.api_version,
            kind=about.kind,
            name=self.namespace if own else about.name,
        )

    @property
    def fill_percent(self) -> int:
        """Percent of its request that a missing pod counts with when scaling down by utilization."""
        return max(100, self.utilization or 0)

    @property
    def name(self) -> str:
        """Name of a custom or external metric."""
        return self.identifier.name if self.identifier else ""


class Tolerance(msgspec.Struct, frozen=True):
    """How far the ratio may be above (up) or below (down) 1 without a change, inclusive."""

    up: float
    down: float

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Tally(msgspec.Struct, frozen=True):
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


class Reading(NamedTuple):
    """A measured value of something other than the target's pods, and the number of pods that share it.

    Attributes:
        series: Values in thousandths: one of an object, any number of an external metric.
        pods: All pods of the selector; ``ready`` those that are running and ready.
        replicas: ``status.replicas`` of the target.
    """

    series: Sequence[int]
    pods: int
    ready: int
    replicas: int


Known = Tally | Reading | str
"""What is known of a metric; a text says why nothing is."""


class Arithmetic(msgspec.Struct, frozen=True):
    """The computation of a number of replicas.

    Attributes:
        replicas: The proposal.
        ratio: Current over target, first pass.
        filled_ratio: The same after missing and unready pods were filled in; None where none were.
        utilization: Percent of the request, None for other targets.
        average: What the status reports in thousandths: the average per sample or replica, or the
            value of a target in all.
        total: The sum that an average per replica was made of, in thousandths; else None.
    """

    replicas: int
    ratio: float
    filled_ratio: float | None
    utilization: int | None
    average: int
    total: int | None = None


class Proposal(msgspec.Struct, frozen=True):
    """The proposal of one metric."""

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
