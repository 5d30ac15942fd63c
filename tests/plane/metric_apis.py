"""custom.metrics.k8s.io and external.metrics.k8s.io of a real control plane, whose values a test decides."""

from __future__ import annotations

from contextlib import asynccontextmanager

from aiohttp import web
from tests.plane.aggregated import Group, aggregated
from tests.plane.usage_api import Load

from kubetide.cluster import HttpCluster
from kubetide.objects.base import Json
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.units.selectors import Selector
from kubetide.units.time import format_rfc3339
from kubetide.watching import Informer

_ANY = {"name": "*/*", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
_ALL = {
    "name": "*",
    "singularName": "",
    "namespaced": True,
    "kind": "ExternalMetricValueList",
    "verbs": ["get"],
}
CUSTOM = Group("custom.metrics.k8s.io", "v1beta2", (_ANY,))
EXTERNAL = Group("external.metrics.k8s.io", "v1beta1", (_ALL,))


class Values:
    """The measured values beside usage; quantities as text or numbers. A value that is not set is not found.

    Attributes:
        pods: By metric, what the pods of each app do together in thousandths: ``{metric: {app: milli}}``.
        objects: By ``(resource with its group, name, metric)``.
        external: The series of a metric, each as its labels and its value.
    """

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, int]] = {}
        self.objects: dict[tuple[str, str, str], str] = {}
        self.external: dict[str, list[tuple[dict[str, str], str]]] = {}


@asynccontextmanager
async def metric_apis(
    cluster: HttpCluster, clock: Clock, tls, values: Values, *, pods: Informer[Pod], load: Load
):
    """Serve the values of pods, objects and series; return when they are, and take all away at the end.

    Args:
        cluster: Of an administrator.
        clock: Its time.
        tls: The server's context for localhost.
        values: Read anew for each question.
        pods: All pods.
        load: Knows how the pods of an app share what they do.
    """

    def item(kind: str, api_version: str, namespace: str, name: str, metric: str, value: str) -> Json:
        about = {"kind": kind, "namespace": namespace, "name": name, "apiVersion": api_version}
        measured = {"metric": {"name": metric}, "timestamp": format_rfc3339(clock.now()), "value": value}
        return {"describedObject": about, **measured}

    async def of_object(request: web.Request) -> web.Response:
        namespace, resource, name, metric = (
            request.match_info[part] for part in ("namespace", "resource", "name", "metric")
        )
        value = values.objects.get((resource, name, metric))
        if value is None:
            return _not_found(f"the server could not find the metric {metric} for {resource} {name}")
        plural, _, group = resource.partition(".")
        found = item(plural, group and f"{group}/v1", namespace, name, metric, value)
        return _listed("MetricValueList", CUSTOM, [found])

    async def of_pods(request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        if metric not in values.pods:
            return _not_found(f"the server could not find the metric {metric} for pods")
        selector = Selector.parse(request.query.get("labelSelector", ""))
        found = [
            item("Pod", "v1", home, name, metric, f"{milli}m")
            for (home, name), pod in sorted(pods.objects.items())
            if home == namespace
            and selector.matches(pod.metadata.labels or {})
            and (whole := values.pods[metric].get(load.app_of(pod))) is not None
            and (milli := load.share(pod, whole)) is not None
        ]
        return _listed("MetricValueList", CUSTOM, found)

    async def of_series(request: web.Request) -> web.Response:
        metric = request.match_info["metric"]
        if metric not in values.external:
            return _not_found(f"the server could not find the metric {metric}")
        selector = Selector.parse(request.query.get("labelSelector", ""))
        now = format_rfc3339(clock.now())
        found = [
            {"metricName": metric, "metricLabels": labels, "timestamp": now, "value": value}
            for labels, value in values.external[metric]
            if selector.matches(labels)
        ]
        return _listed("ExternalMetricValueList", EXTERNAL, found)

    within = "namespaces/{namespace}"
    routes = [
        web.get(f"{CUSTOM.root}/{within}/pods/*/{{metric}}", of_pods),
        web.get(f"{CUSTOM.root}/{within}/{{resource}}/{{name}}/{{metric}}", of_object),
        web.get(f"{EXTERNAL.root}/{within}/{{metric}}", of_series),
    ]
    async with aggregated(cluster, clock, tls, "adapter", [CUSTOM, EXTERNAL], routes):
        yield


def _listed(kind: str, group: Group, items: list[Json]) -> web.Response:
    return web.json_response({"kind": kind, "apiVersion": group.version_of, "metadata": {}, "items": items})


def _not_found(message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return web.json_response({**status, "message": message, "reason": "NotFound", "code": 404}, status=404)
