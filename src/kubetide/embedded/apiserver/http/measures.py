"""custom.metrics.k8s.io and external.metrics.k8s.io: which requests there are, and the answers.

Source: k8s.io/metrics v0.36 (types, paths of the client); custom-metrics-apiserver (what is served and
in which words it is refused). A name of ``*`` asks for every object that the label selector chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kubetide.embedded.apiserver.http.access import User, Wish
from kubetide.embedded.apiserver.http.discovery import Entry
from kubetide.embedded.apiserver.store.request import Options, Request
from kubetide.embedded.apiserver.store.rest import Rest
from kubetide.embedded.measured import CustomMetric, Measured, MeasuredSeries, metric_not_found
from kubetide.objects.base import Json
from kubetide.objects.kinds import NAMESPACES, PODS
from kubetide.ports.errors import BadRequest, MethodNotAllowed, NotFound
from kubetide.units.quantity import milli_to_text
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import Duration, format_rfc3339

CUSTOM_GROUP = "custom.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
EXTERNAL_GROUP = "external.metrics.k8s.io"
EXTERNAL_VERSION = "v1beta1"
EVERY = "*"

_SELECTOR_OPERATORS = {"in": "In", "notin": "NotIn", "!=": "NotIn", "exists": "Exists", "!": "DoesNotExist"}


class CustomMetrics(Protocol):
    """Where custom metrics come from; ``kubetide.embedded.load.EmbeddedCustomMetrics`` says more."""

    def custom_metrics(self) -> Sequence[CustomMetric]: ...

    def of_pods(
        self, metric: str, *, namespace: str, labels: str = "", selector: str = ""
    ) -> list[Measured]: ...

    def of_object(
        self, metric: str, *, resource: str, namespace: str, name: str, selector: str = ""
    ) -> Measured: ...


class ExternalMetrics(Protocol):
    """Where external metrics come from; ``kubetide.embedded.load.EmbeddedExternalMetrics`` says more."""

    def external_metrics(self) -> Sequence[str]: ...

    def series(self, metric: str, *, namespace: str, selector: str = "") -> list[MeasuredSeries]: ...


class Measures:
    """The two APIs of metrics; each is there as long as its source has a metric.

    Args:
        custom: None leaves custom metrics out.
        external: None leaves external metrics out.
        rest: Knows the objects that ``*`` stands for.
    """

    def __init__(self, custom: CustomMetrics | None, external: ExternalMetrics | None, rest: Rest) -> None:
        self._custom = custom
        self._external = external
        self._rest = rest

    def entries(self) -> list[Entry]:
        """Return what discovery lists: a metric of pods is the resource ``pods/NAME``."""
        found = [
            Entry(
                CUSTOM_GROUP,
                version,
                f"{metric.resource}/{metric.name}",
                "MetricValueList",
                metric.namespaced,
                ("get",),
            )
            for version in CUSTOM_VERSIONS
            for metric in (self._custom.custom_metrics() if self._custom else ())
        ]
        return found + [
            Entry(
                EXTERNAL_GROUP,
                EXTERNAL_VERSION,
                name,
                "ExternalMetricValueList",
                True,
                ("get",),
                singular="",
            )
            for name in (self._external.external_metrics() if self._external else ())
        ]

    def groups(self) -> list[tuple[str, str]]:
        """Return the groups and versions that are served."""
        return list(dict.fromkeys((entry.group, entry.version) for entry in self.entries()))

    def answer(self, method: str, path: str, query: Mapping[str, str], user: User) -> Json | None:
        """Answer a request for values; None where the path names no metric.

        Raises: Forbidden, MethodNotAllowed, BadRequest, NotFound.
        """
        parts = path.strip("/").split("/")
        if len(parts) < 4 or parts[0] != "apis" or not all(parts):
            return None
        group, version, rest = parts[1], parts[2], parts[3:]
        if group == CUSTOM_GROUP and version in CUSTOM_VERSIONS and self._custom:
            asked = _custom_question(rest)
            if asked is None or not self._custom.custom_metrics():
                return None
            user.require(asked.wish)
            _check_method(method, query)
            return self._custom_list(self._custom, version, asked, query)
        if group == EXTERNAL_GROUP and version == EXTERNAL_VERSION and self._external:
            if len(rest) != 3 or rest[0] != "namespaces" or not self._external.external_metrics():
                return None
            _, namespace, metric = rest
            user.require(Wish("list", EXTERNAL_GROUP, metric, namespace))
            _check_method(method, query)
            found = self._external.series(
                metric, namespace=namespace, selector=query.get("labelSelector", "")
            )
            items = [_series_item(metric, series) for series in found]
            return _list("ExternalMetricValueList", f"{group}/{version}", items)
        return None

    def _custom_list(
        self, source: CustomMetrics, version: str, asked: _Question, query: Mapping[str, str]
    ) -> Json:
        labels, selector = query.get("labelSelector", ""), query.get("metricLabelSelector", "")
        shown = _selector_object(selector)
        if asked.name != EVERY:
            found = [
                source.of_object(
                    asked.metric,
                    resource=asked.resource,
                    namespace=asked.namespace,
                    name=asked.name,
                    selector=selector,
                )
            ]
        elif asked.resource == PODS.resource:
            found = source.of_pods(asked.metric, namespace=asked.namespace, labels=labels, selector=selector)
        else:
            found = self._of_every(source, asked, labels, selector)
        items = [_value_item(version, asked.metric, value, shown) for value in found]
        return _list("MetricValueList", f"{CUSTOM_GROUP}/{version}", items)

    def _of_every(
        self, source: CustomMetrics, asked: _Question, labels: str, selector: str
    ) -> list[Measured]:
        """The values of the objects that are there and have one."""
        if (asked.resource, asked.metric) not in {(one[0], one[1]) for one in source.custom_metrics()}:
            raise metric_not_found(asked.resource, asked.metric)
        found = []
        for name in self._names_of(asked.resource, asked.namespace, labels):
            try:
                value = source.of_object(
                    asked.metric,
                    resource=asked.resource,
                    namespace=asked.namespace,
                    name=name,
                    selector=selector,
                )
            except NotFound:
                continue
            found.append(value)
        return found

    def _names_of(self, resource: str, namespace: str, labels: str) -> list[str]:
        """Return the names of the objects that a label selector chooses."""
        for kind in self._rest.kinds:
            if kind.resource == resource:
                response = self._rest.handle(Request("list", kind, namespace, options=Options(labels=labels)))
                return [revision.key[1] for revision in response.listing or ()]
        return []


class _Question(NamedTuple):
    """What a path below custom.metrics.k8s.io asks."""

    resource: str
    namespace: str
    name: str
    metric: str

    @property
    def wish(self) -> Wish:
        """How the authorizer sees it."""
        if self.resource == NAMESPACES.resource:
            return Wish("get", CUSTOM_GROUP, "metrics", self.name, self.metric)
        return Wish("get", CUSTOM_GROUP, f"{self.resource}/{self.metric}", self.namespace, self.name)


def _custom_question(rest: Sequence[str]) -> _Question | None:
    if len(rest) == 4 and rest[0] == "namespaces" and rest[2] == "metrics":
        return _Question(NAMESPACES.resource, "", rest[1], rest[3])
    if len(rest) == 5 and rest[0] == "namespaces":
        return _Question(rest[2], rest[1], rest[3], rest[4])
    if len(rest) == 3 and rest[0] != "namespaces":
        return _Question(rest[0], "", rest[1], rest[2])
    return None


def _check_method(method: str, query: Mapping[str, str]) -> None:
    if method not in {"GET", "HEAD"} or query.get("watch", "") in {"1", "true"}:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")


def _list(kind: str, api_version: str, items: list[Json]) -> Json:
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}


def _value_item(version: str, metric: str, value: Measured, selector: Json | None) -> Json:
    described = {"kind": value.kind, "name": value.name, "apiVersion": value.api_version}
    if value.namespace:
        described["namespace"] = value.namespace
    item: Json = {
        "describedObject": described,
        "timestamp": format_rfc3339(value.at),
        "value": milli_to_text(value.milli),
    }
    if version == "v1beta1":
        return item | {"metricName": metric, "window": _seconds(value.window), "selector": selector}
    named = {"name": metric, "selector": selector}
    return item | {"metric": named, "windowSeconds": _seconds(value.window)}


def _series_item(metric: str, series: MeasuredSeries) -> Json:
    return {
        "metricName": metric,
        "metricLabels": dict(series.labels),
        "timestamp": format_rfc3339(series.at),
        "window": _seconds(series.window),
        "value": milli_to_text(series.milli),
    }


def _seconds(window: Duration) -> int:
    return window // 1_000_000_000


def _selector_object(text: str) -> Json | None:
    """Return a metric's selector as the answer repeats it; None for none. Raises BadRequest."""
    try:
        selector = Selector.parse(text)
    except SelectorError as error:
        raise BadRequest(str(error)) from error
    labels: dict[str, str] = {}
    expressions: list[Json] = []
    for requirement in selector.requirements:
        operator = _SELECTOR_OPERATORS.get(requirement.operator)
        if requirement.operator in {"=", "=="}:
            labels[requirement.key] = requirement.values[0]
        elif operator is None:
            raise BadRequest(f'"{requirement.operator}" isn\'t supported in label selectors')
        else:
            one: Json = {"key": requirement.key, "operator": operator}
            expressions.append(one | ({"values": list(requirement.values)} if requirement.values else {}))
    found: Json = {"matchLabels": labels} if labels else {}
    found |= {"matchExpressions": expressions} if expressions else {}
    return found or None
