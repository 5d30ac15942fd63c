"""metrics.k8s.io of a real control plane: a small server behind the aggregator, whose usage a test decides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kubetide.cluster import HttpCluster
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, NotFound
from kubetide.serving import Listener
from kubetide.units.selectors import Selector
from kubetide.units.time import format_rfc3339, milliseconds, seconds
from kubetide.watching import Informer

API_SERVICES = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", dict, namespaced=False)
SERVICES = Kind("", "v1", "Service", "services", dict)

_ROOT = "/apis/metrics.k8s.io/v1beta1"
_NAME = "v1beta1.metrics.k8s.io"
_WHERE = {"namespace": "kube-system", "name": "usage"}
_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "metrics.k8s.io/v1beta1",
    "resources": [
        {
            "name": "pods",
            "singularName": "",
            "namespaced": True,
            "kind": "PodMetrics",
            "verbs": ["get", "list"],
        }
    ],
}


class Load:
    """CPU that the pods of an app use together, shared evenly among those that run."""

    def __init__(self, pods: Informer[Pod], app_of: Callable[[Pod], str]) -> None:
        self._pods = pods
        self._app_of = app_of
        self._milli: dict[str, int] = {}

    def set(self, app: str, milli: int) -> None:
        """From now on the pods of this app use so much together."""
        self._milli[app] = milli

    def of(self, pod: Pod) -> int | None:
        """What a pod uses; None where nothing is measured of it."""
        app = self._app_of(pod)
        if app not in self._milli or not _runs(pod):
            return None
        sharing = sum(_runs(other) and self._app_of(other) == app for other in self._pods.objects.values())
        return self._milli[app] // sharing


def _runs(pod: Pod) -> bool:
    return pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None


@asynccontextmanager
async def usage_api(
    cluster: HttpCluster, clock: Clock, tls, *, pods: Informer[Pod], milli_of: Callable[[Pod], int | None]
):
    """Serves the usage of pods through the API server; returns when that answers, and takes all away at the end.

    Args:
        cluster: Of an administrator.
        clock: Its time.
        tls: The server's context for localhost.
        pods: All pods.
        milli_of: CPU that a pod uses, None for one without a sample.
    """

    def samples(namespace: str, labels: str) -> list[Json]:
        selector = Selector.parse(labels)
        now = format_rfc3339(clock.now())
        return [
            {
                "metadata": {"name": name, "namespace": home, "labels": pod.metadata.labels or {}},
                "timestamp": now,
                "window": "1s",
                "containers": [
                    {"name": container.name, "usage": {"cpu": f"{milli}m", "memory": "1Mi"}}
                    for container in pod.spec.containers or ()
                ],
            }
            for (home, name), pod in sorted(pods.objects.items())
            if namespace in {"", home}
            and selector.matches(pod.metadata.labels or {})
            and (milli := milli_of(pod)) is not None
        ]

    async def listed(request):
        found = samples(request.match_info.get("namespace", ""), request.query.get("labelSelector", ""))
        return web.json_response(
            {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": found}
        )

    async def resources(_request):
        return web.json_response(_RESOURCES)

    app = web.Application()
    app.add_routes(
        [
            web.get(_ROOT, resources),
            web.get(f"{_ROOT}/pods", listed),
            web.get(f"{_ROOT}/namespaces/{{namespace}}/pods", listed),
        ]
    )
    listener = Listener(app)
    try:
        await listener.listen("127.0.0.1", tls=tls)
        _, port = listener.address
        await _register(cluster, clock, port)
        yield
    finally:
        with suppress(NotFound):
            await cluster.delete(API_SERVICES, _NAME)
        with suppress(NotFound):
            await cluster.delete(SERVICES, _WHERE["name"], namespace=_WHERE["namespace"])
        await listener.close()


async def _register(cluster: HttpCluster, clock: Clock, port: int) -> None:
    # An external name needs neither kube-proxy nor endpoints: the aggregator resolves it itself.
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    await cluster.create(SERVICES, {"metadata": _WHERE, "spec": spec})
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {**_WHERE, "port": port},
    }
    await cluster.create(API_SERVICES, {"metadata": {"name": _NAME}, "spec": spec})
    deadline = clock.monotonic() + seconds(30)
    while (problem := await _unreachable(cluster)) is not None:
        assert clock.monotonic() < deadline, f"the aggregator does not reach {_NAME}: {problem}"
        await clock.sleep(milliseconds(100))


async def _unreachable(cluster: HttpCluster) -> ApiError | None:
    try:
        await cluster.get_raw(f"{_ROOT}/pods", hasty=True)
    except ApiError as error:
        return error
    return None
