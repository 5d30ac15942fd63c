"""The series that the server exposes at ``/metrics``. Names, labels and buckets are kube-apiserver v1.36.2's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from aiohttp import web

from kubetide.embedded.apiserver.http.routes import Target
from kubetide.embedded.apiserver.store.rest import Rest
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry

METRICS_PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

ADMITTED = web.RequestKey("admitted", bool)
"""Marks a request that its user may make: others are not counted, as upstream refuses them before it counts."""

_LABELS = ("component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version")
_LONG_LABELS = ("component", "group", "resource", "scope", "subresource", "verb", "version")
_BUCKETS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0),
    *(3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
_PLAIN_PATHS = frozenset({"/livez", "/readyz", "/healthz", METRICS_PATH})
_READ_ONLY = frozenset({"GET", "LIST"})
_APPLY = "application/apply-patch"


class Asked(NamedTuple):
    """How a request is counted: the labels of its series but for the code."""

    component: str
    dry_run: str
    group: str
    resource: str
    scope: str
    subresource: str
    verb: str
    version: str


def asked_for(request: web.Request, target: Target | None) -> Asked | None:
    """Return how a request is counted, None for one that upstream does not count either."""
    if target is None:
        path = request.path
        if path.startswith("/openapi/v3"):
            path = "openapi/v3"
        elif path not in _PLAIN_PATHS:
            return None
        return Asked("", "", "", "", "", path, request.method, "")
    kind, query = target.kind, request.query
    verb = "GET" if request.method == "HEAD" else request.method
    if verb == "GET" and query.get("watch", "").lower() in {"1", "true"} and not target.subresource:
        verb = "WATCH"
    elif not target.name and verb == "GET":
        verb = "LIST"
    elif verb == "PATCH" and request.headers.get("Content-Type", "").startswith(_APPLY):
        verb = "APPLY"
    scope = "namespace" if target.namespace else "cluster"
    if target.name or verb == "POST":
        scope = "resource"
    dry_run = query.getall("dryRun", [])
    return Asked(
        "apiserver",
        "" if not dry_run else "All" if dry_run == ["All"] else "invalid",
        kind.group,
        kind.plural,
        scope,
        target.subresource,
        verb,
        kind.version,
    )


class ServerSeries:
    """Counts requests, and gives all series as text."""

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest = rest
        self._clock = clock
        self._registry = Registry()
        self._requests = self._registry.counter(
            "apiserver_request_total",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, "
            "resource, scope, component, and HTTP response code.",
            ("code", *_LABELS),
        )
        self._durations = self._registry.histogram(
            "apiserver_request_duration_seconds",
            "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, "
            "resource, subresource, scope and component.",
            _LABELS,
            buckets=_BUCKETS,
        )
        self._in_flight = self._registry.gauge(
            "apiserver_current_inflight_requests",
            "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request "
            "kind in last second.",
            ("request_kind",),
        )
        self._long_running = self._registry.gauge(
            "apiserver_longrunning_requests",
            "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, "
            "resource, scope and component. Not all requests are tracked this way.",
            _LONG_LABELS,
        )
        self._stored = self._registry.gauge(
            "apiserver_storage_objects",
            "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects "
            "instead] Number of stored objects at the time of last check split by kind. In case of a fetching "
            "error, the value will be -1.",
            ("resource",),
        )
        self._objects = self._registry.gauge(
            "apiserver_resource_objects",
            "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching "
            "error, the value will be -1.",
            ("group", "resource"),
        )
        for kind in ("mutating", "readOnly"):
            self._in_flight.set(0, kind)
        self._registry.before_scrape(self._count_objects)

    def text(self) -> bytes:
        """Return all series in the text format of Prometheus."""
        return self._registry.text()

    @contextmanager
    def under_way(self, asked: Asked) -> Iterator[None]:
        """Count a request among those that are being answered."""
        if asked.verb == "WATCH":
            gauge, labels = self._long_running, [asked.component, *asked[2:]]
        else:
            gauge, labels = self._in_flight, ["readOnly" if asked.verb in _READ_ONLY else "mutating"]
        gauge.add(1, *labels)
        try:
            yield
        finally:
            gauge.add(-1, *labels)

    def answered(self, asked: Asked, code: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.add(1, str(code), *asked)
        self._durations.observe(seconds, *asked)

    def _count_objects(self) -> None:
        self._stored.clear()
        self._objects.clear()
        for kind in self._rest.store.kinds:
            count = self._rest.store.count(kind)
            self._stored.set(count, f"{kind.plural}.{kind.group}" if kind.group else kind.plural)
            self._objects.set(count, kind.group, kind.plural)
