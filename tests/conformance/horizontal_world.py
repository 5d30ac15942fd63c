"""The scripted API server, metrics APIs and clock of the horizontal suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from tests.conformance.cases import Case

from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, EVENTS, HPAS, REPLICA_SETS, Kind
from kubetide.objects.workload import Scale
from kubetide.ports.errors import ApiError, Conflict, InternalError, MetricsError
from kubetide.ports.metrics import ExternalValues, ObjectValue, PodSamples, PodValues, ResourceUsage
from kubetide.units.quantity import Quantity
from kubetide.units.time import Duration, Instant, parse_duration, parse_rfc3339

_SCALE = ("status", "scale")
KINDS: tuple[Kind[Any], ...] = (
    DEPLOYMENTS,
    REPLICA_SETS,
    DAEMON_SETS,
    Kind("apps", "v1", "StatefulSet", "statefulsets", dict, subresources=_SCALE),
    Kind("", "v1", "ReplicationController", "replicationcontrollers", dict, subresources=_SCALE),
    Kind("example.com", "v1", "Widget", "widgets", dict, subresources=_SCALE),
)
_PLURALS = {
    "Deployment": "deployments",
    "Ingress": "ingresses",
    "Namespace": "namespaces",
    "Pod": "pods",
    "Service": "services",
}
_YEAR_ONE = "0001-01-01T00:00:00Z"

# What client libraries say when an error comes without a Status object.
_TEXT_OF_CODE = {
    401: "the server has asked for the client to provide credentials",
    403: "forbidden",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class Clock:
    def __init__(self) -> None:
        self.time = Instant(0)

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Duration:
        return Duration(self.time)

    async def sleep(self, duration: Duration) -> None:
        self.time = Instant(self.time + duration)


class World:
    """The Cluster port and those of metrics, as far as the loop uses them, answering from a script.

    The answers of metrics are given as they are, whatever the selectors of the question say.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.step: Case = case
        self.writes: list[int] = []
        self.puts = 0
        self.status_patches: list[dict[str, Any]] = []
        self.events: list[list[str]] = []
        self.events_by_name: dict[str, list[str]] = {}

    def start(self, step: Case) -> None:
        self.step, self.puts = step, 0
        self.writes, self.status_patches, self.events = [], [], []

    async def kinds(self) -> Sequence[Kind[Any]]:
        return KINDS

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str) -> Scale:
        script = self.step["scale"]
        if script.get("getError"):
            raise _api_error(script["getError"], f"get {kind.plural} {name}")
        body = {
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"},
            "spec": {"replicas": script.get("specReplicas", 0)},
            "status": {"replicas": script.get("statusReplicas", 0), "selector": script.get("selector", "")},
        }
        return msgspec.convert(body, Scale)

    async def replace_scale(
        self, kind: Kind[Any], name: str, replicas: int, *, namespace: str, resource_version: str = ""
    ) -> Scale:
        errors = self.step["scale"].get("updateErrors") or []
        self.puts += 1
        if self.puts <= len(errors) and errors[self.puts - 1]:
            raise _api_error(errors[self.puts - 1], f"put {kind.plural} {name}")
        self.writes.append(replicas)
        return await self.get_scale(kind, name, namespace=namespace)

    async def patch(self, kind: Kind[Any], name: str, patch: Any, **_: Any) -> Any:
        if kind == EVENTS:
            # Counted up; the record holds every call.
            self.events.append(self.events_by_name[name])
            return
        assert kind == HPAS
        self.status_patches.append(patch["status"])
        if self.case.get("statusUpdateError"):
            raise _api_error(self.case["statusUpdateError"], f"put {HPAS.resource} {name}")

    async def create(self, kind: Kind[Any], body: Any, **_: Any) -> Any:
        assert kind == EVENTS
        event = [body["type"], body["reason"], body["message"]]
        self.events_by_name[body["metadata"]["name"]] = event
        self.events.append(event)

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        if not namespace:
            raise MetricsError("this world lists samples by namespace and selector only")
        script = (self.step.get("metrics") or {}).get("resource") or {
            "error": {"code": 404, "text": "404 page not found\n"}
        }
        if script.get("error"):
            raise MetricsError(str(_api_error(script["error"], "get pods.metrics.k8s.io")))
        return _samples(script.get("items") or [])

    async def pod_values(self, metric: str, **_: Any) -> PodValues:
        items = self._items("pods", metric, "custom", "pods.custom.metrics.k8s.io *")
        if not items:
            raise MetricsError("no metrics returned from custom metrics API")
        milli = np.array([_milli(item) for item in items], np.int64)
        names = tuple(item["describedObject"]["name"] for item in items)
        return PodValues(names, milli, np.zeros(len(items), np.int64))

    async def object_value(
        self, metric: str, *, namespace: str, api_version: str, kind: str, name: str, selector: str = ""
    ) -> ObjectValue:
        group = api_version.rpartition("/")[0]
        resource = f"{_PLURALS[kind]}.{group}".rstrip(".")
        about = f"{resource}.custom.metrics.k8s.io {name}"
        if kind == "Namespace":
            about = f"metrics.custom.metrics.k8s.io {metric}"
        items = self._items("object", metric, "custom", about)
        if len(items) != 1:
            raise MetricsError(
                "unable to fetch metrics from custom metrics API: the custom metrics API server "
                f"returned {len(items)} results when we asked for exactly one"
            )
        return ObjectValue(_milli(items[0]), 0)

    async def external_values(self, metric: str, **_: Any) -> ExternalValues:
        items = self._items("external", metric, "external", f"{metric}.external.metrics.k8s.io")
        if not items:
            raise MetricsError("no metrics returned from external metrics API")
        return ExternalValues([_milli(item) for item in items], 0)

    def _items(self, source: str, metric: str, api: str, about: str) -> list[dict[str, Any]]:
        scripts = (self.step.get("metrics") or {}).get(source) or {}
        script = scripts.get(metric) or {"error": {"code": 404, "text": "404 page not found\n"}}
        if script.get("error"):
            error = _api_error(script["error"], f"get {about}")
            raise MetricsError(f"unable to fetch metrics from {api} metrics API: {error}")
        return list(script.get("items") or [])


def _milli(item: Mapping[str, Any]) -> int:
    return Quantity.parse(item["value"]).milli_value()


def _api_error(script: Mapping[str, Any], request: str) -> ApiError:
    status = script.get("status")
    if status is None:
        text = _TEXT_OF_CODE.get(script["code"])
        if text is None:
            text = f'an error on the server ("{script["text"].strip()}") has prevented the request from succeeding'
        return InternalError(f"{text} ({request})")
    kind = Conflict if status.get("reason") == "Conflict" else InternalError
    return kind(status.get("message", ""))


def _samples(items: list[dict[str, Any]]) -> PodSamples:
    containers = [(c["name"], c.get("usage") or {}) for item in items for c in item.get("containers") or ()]
    resources = sorted({resource for _, usage in containers for resource in usage})
    return PodSamples(
        namespaces=tuple(item["metadata"].get("namespace", "") for item in items),
        names=tuple(item["metadata"]["name"] for item in items),
        timestamp_ns=np.array(
            [max(parse_rfc3339(i.get("timestamp") or _YEAR_ONE), -(1 << 63)) for i in items], np.int64
        ),
        window_ns=np.array([parse_duration(i.get("window") or "0s") for i in items], np.int64),
        first=np.cumsum([0, *(len(item.get("containers") or ()) for item in items)], dtype=np.int64),
        containers=tuple(name for name, _ in containers),
        usage={resource: _usage(resource, [usage for _, usage in containers]) for resource in resources},
    )


def _usage(resource: str, usages: list[dict[str, Any]]) -> ResourceUsage:
    milli = [Quantity.parse(usage[resource]).milli_value() if resource in usage else 0 for usage in usages]
    return ResourceUsage(
        np.array(milli, np.int64), np.array([resource in usage for usage in usages], np.bool_)
    )
