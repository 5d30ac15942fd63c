"""The CustomMetricSource port over a load model: what services measure of pods, Deployments and namespaces.

As with usage, a value is the mean over the newest sampling step; a pod has values from the first
step that it ran through. The metrics have no labels of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kubetide.embedded.load.layout import Layout, chosen
from kubetide.embedded.load.model import LoadModel, Usage
from kubetide.embedded.load.service import ServiceStep
from kubetide.embedded.measured import CustomMetric, Measured, metric_not_found
from kubetide.objects.kinds import DEPLOYMENTS, KINDS, NAMESPACES, PODS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, BadRequest, MetricsError, NotFound
from kubetide.ports.metrics import ObjectValue, PodValues
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import ZERO, Duration, Instant
from kubetide.units.vectors import BoolVector, Float64Vector, Int64Vector

_MOST_QUESTIONS = 1 << 10

_FETCHING = "unable to fetch metrics from custom metrics API: "


class _Column(NamedTuple):
    """A metric of the visible pods: values, and which pods have one; both (pods,)."""

    values: Float64Vector
    present: BoolVector


def _requests(usage: Usage) -> _Column:
    return _Column(usage.requests, _in_service(usage))


def _durations(usage: Usage) -> _Column:
    return _Column(_latency(usage), _in_service(usage) & usage.serving)


def _in_flight(usage: Usage) -> _Column:
    # Requests served times the time of each: Little's law.
    return _Column(usage.requests * _latency(usage), _in_service(usage))


def _in_service(usage: Usage) -> BoolVector:
    return usage.service < len(usage.services.latency)


def _latency(usage: Usage) -> Float64Vector:
    """Seconds of a request on each pod; 0 for a pod without a service."""
    return np.append(usage.services.latency, 0.0)[usage.service]


OfPods = Callable[[Usage], _Column]
OfServices = Callable[[ServiceStep], Float64Vector]

POD_METRICS: dict[str, OfPods] = {
    "http_requests_per_second": _requests,
    "http_request_duration_seconds": _durations,
    "http_requests_in_flight": _in_flight,
}
"""Of each Running pod of a service."""

DEPLOYMENT_METRICS: dict[str, OfServices] = {
    "requests_per_second": lambda step: step.offered,
    "queue_length": lambda step: step.queue,
    "request_duration_seconds": lambda step: step.latency,
}
"""Of the Deployment of a service; also there while it has no pod."""

NAMESPACE_METRICS: dict[str, OfServices] = {
    "requests_per_second": lambda step: step.offered,
    "queue_length": lambda step: step.queue,
}
"""Of a namespace: the sum over its services."""


class EmbeddedCustomMetrics:
    """Custom metrics of a load model, with a delay as a scraping server has it."""

    def __init__(self, model: LoadModel, clock: Clock, *, scrape_delay: Duration = ZERO) -> None:
        self._model = model
        self._clock = clock
        self._delay = scrape_delay
        model.keep(scrape_delay)
        self._numbers: dict[tuple[str, str], tuple[Layout, Int64Vector]] = {}

    def custom_metrics(self) -> list[CustomMetric]:
        """Return every metric that there is; none without services."""
        if not self._model.services:
            return []
        return [
            *(CustomMetric(PODS.resource, name) for name in POD_METRICS),
            *(CustomMetric(DEPLOYMENTS.resource, name) for name in DEPLOYMENT_METRICS),
            *(CustomMetric(NAMESPACES.resource, name, namespaced=False) for name in NAMESPACE_METRICS),
        ]

    def of_pods(self, metric: str, *, namespace: str, labels: str = "", selector: str = "") -> list[Measured]:
        """Return a metric of the pods with such labels, in the model's order; empty where none has a value.

        Raises: NotFound for a metric that pods do not have, BadRequest for a selector that cannot be read.
        """
        usage, numbers, values = self._of_pods(metric, namespace, labels, selector)
        if usage is None:
            return []
        names = usage.layout.names
        return [
            self._measured(PODS, namespace, names[number], value, usage.end)
            for number, value in zip(numbers.tolist(), values.tolist(), strict=True)
        ]

    def of_object(
        self, metric: str, *, resource: str, namespace: str, name: str, selector: str = ""
    ) -> Measured:
        """Return a metric of one object. Raises NotFound, BadRequest.

        Args:
            metric: Its name.
            resource: ``pods``, ``deployments.apps``, ``namespaces``; others have no metrics.
            namespace: Of the object; of a namespace it may be empty.
            name: Of the object.
            selector: Label selector of the metric's own labels.
        """
        if CustomMetric(resource, metric, resource != NAMESPACES.resource) not in self.custom_metrics():
            raise metric_not_found(resource, metric, name=name)
        if not _read(selector).matches({}):
            raise metric_not_found(resource, metric, name=name, selector=selector)
        if resource == PODS.resource:
            for found in self.of_pods(metric, namespace=namespace):
                if found.name == name:
                    return found
            raise metric_not_found(resource, metric, name=name)
        usage = self._usage()
        of_namespace = resource == NAMESPACES.resource
        numbers = [
            number
            for number, service in enumerate(self._model.services)
            if (of_namespace and service.namespace == name)
            or (not of_namespace and (service.namespace, service.name) == (namespace, name))
        ]
        if usage is None or not numbers:
            raise metric_not_found(resource, metric, name=name)
        column = (NAMESPACE_METRICS if of_namespace else DEPLOYMENT_METRICS)[metric](usage.services)
        kind: Kind[Any] = NAMESPACES if of_namespace else DEPLOYMENTS
        value = _milli(column[numbers].sum(keepdims=True)).item()
        return self._measured(kind, "" if of_namespace else namespace, name, value, usage.end)

    async def pod_values(
        self, metric: str, *, namespace: str, pods: str = "", selector: str = ""
    ) -> PodValues:
        """Return a metric of the pods that match. Raises MetricsError, also when no pod has a value."""
        try:
            usage, numbers, values = self._of_pods(metric, namespace, pods, selector)
        except ApiError as error:
            raise MetricsError(f"{_FETCHING}{error}") from error
        if usage is None or not len(numbers):
            raise MetricsError("no metrics returned from custom metrics API")
        names = usage.layout.names
        return PodValues(
            names=[names[number] for number in numbers.tolist()],
            milli=values,
            timestamp_ns=np.full(len(values), usage.end, np.int64),
        )

    async def object_value(
        self, metric: str, *, namespace: str, api_version: str, kind: str, name: str, selector: str = ""
    ) -> ObjectValue:
        """Return a metric of one object. Raises MetricsError."""
        group = api_version.rpartition("/")[0]
        try:
            found = self.of_object(
                metric,
                resource=_resource_of(group, kind),
                namespace=namespace,
                name=name,
                selector=selector,
            )
        except ApiError as error:
            raise MetricsError(f"{_FETCHING}{error}") from error
        return ObjectValue(found.milli, found.at)

    def _usage(self) -> Usage | None:
        return self._model.usage(Instant(self._clock.now() - self._delay))

    def _of_pods(
        self, metric: str, namespace: str, labels: str, selector: str
    ) -> tuple[Usage | None, Int64Vector, Int64Vector]:
        """The step that answers, and numbers and milli-units of its pods that have a value."""
        if metric not in POD_METRICS or not self._model.services:
            raise metric_not_found(PODS.resource, metric)
        usage = self._usage()
        matches = _read(selector).matches({})
        if usage is None or not matches:
            _read(labels)
            return None, np.zeros(0, np.int64), np.zeros(0, np.int64)
        numbers = self._chosen(usage.layout, namespace, labels)
        column = POD_METRICS[metric](usage)
        numbers = numbers[column.present[numbers]]
        return usage, numbers, _milli(column.values[numbers])

    def _chosen(self, layout: Layout, namespace: str, labels: str) -> Int64Vector:
        """The pods that match; the answer is cached while the layout stays."""
        held = self._numbers.get((namespace, labels))
        if held is None or held[0] is not layout:
            try:
                held = layout, np.array(chosen(layout, namespace, labels), np.int64)
            except SelectorError as error:
                raise BadRequest(str(error)) from error
            self._numbers[namespace, labels] = held
            if len(self._numbers) > _MOST_QUESTIONS:
                del self._numbers[next(iter(self._numbers))]
        return held[1]

    def _measured(self, kind: Kind[Any], namespace: str, name: str, milli: int, at: Instant) -> Measured:
        return Measured(kind.api_version, kind.kind, namespace, name, milli, at, self._model.step)


def _read(selector: str) -> Selector:
    try:
        return Selector.parse(selector)
    except SelectorError as error:
        raise BadRequest(str(error)) from error


def _milli(values: Float64Vector) -> Int64Vector:
    return np.rint(values * 1000.0).astype(np.int64)


def _resource_of(group: str, kind: str) -> str:
    """Return the resource of a kind, in any version. Raises NotFound in the words of the client's mapper."""
    for known in KINDS.values():
        if known.group == group and known.kind == kind:
            return known.resource
    full = f"{kind}.{group}" if group else kind
    raise NotFound(f'unable to map kind {full} to resource: no matches for kind "{kind}" in group "{group}"')
