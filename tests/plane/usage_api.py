"""metrics.k8s.io of a real control plane, whose usage a test decides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager

from aiohttp import web
from tests.plane.aggregated import Group, aggregated

from kubetide.cluster import HttpCluster
from kubetide.objects.base import Json
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.units.selectors import Selector
from kubetide.units.time import format_rfc3339
from kubetide.watching import Informer

_PODS = {
    "name": "pods",
    "singularName": "",
    "namespaced": True,
    "kind": "PodMetrics",
    "verbs": ["get", "list"],
}
METRICS = Group("metrics.k8s.io", "v1beta1", (_PODS,))


class Load:
    """CPU that the pods of an app use together, shared evenly among those that run."""

    def __init__(self, pods: Informer[Pod], app_of: Callable[[Pod], str]) -> None:
        self._pods = pods
        self.app_of = app_of
        self._milli: dict[tuple[str, str], int] = {}
        self._each: dict[str, int] = {}

    def set(self, app: str, milli: int, container: str = "") -> None:
        """From now on the pods of this app, or their containers of that name, use that much together."""
        self._milli[app, container] = milli

    def set_each(self, app: str, milli: int) -> None:
        """From now on each container of the app's running pods uses that much, however many there are."""
        self._each[app] = milli

    def of(self, pod: Pod, container: str) -> int | None:
        """The usage of a pod's container; None where nothing is measured of it."""
        app = self.app_of(pod)
        if app in self._each:
            return self._each[app] if _runs(pod) else None
        milli = self._milli.get((app, container), self._milli.get((app, "")))
        return None if milli is None else self.share(pod, milli)

    def share(self, pod: Pod, whole: int) -> int | None:
        """A pod's share of what the pods of its app do together; None for one that does not run."""
        if not _runs(pod):
            return None
        app = self.app_of(pod)
        sharing = sum(_runs(other) and self.app_of(other) == app for other in self._pods.objects.values())
        return whole // sharing


def _runs(pod: Pod) -> bool:
    return pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None


@asynccontextmanager
async def usage_api(
    cluster: HttpCluster,
    clock: Clock,
    tls,
    *,
    pods: Informer[Pod],
    milli_of: Callable[[Pod, str], int | None],
):
    """Serve the usage of pods through the API server; return when that answers, and take all away at the end.

    Args:
        cluster: Of an administrator.
        clock: Its time.
        tls: The server's context for localhost.
        pods: All pods.
        milli_of: CPU that a container of a pod uses, None for one without a sample.
    """

    def samples(namespace: str, labels: str) -> list[Json]:
        selector = Selector.parse(labels)
        now = format_rfc3339(clock.now())
        return [
            {
                "metadata": {"name": name, "namespace": home, "labels": pod.metadata.labels or {}},
                "timestamp": now,
                "window": "1s",
                "containers": containers,
            }
            for (home, name), pod in sorted(pods.objects.items())
            if namespace in {"", home}
            and selector.matches(pod.metadata.labels or {})
            and (containers := usage_of(pod))
        ]

    def usage_of(pod: Pod) -> list[Json]:
        return [
            {"name": container.name, "usage": {"cpu": f"{milli}m", "memory": "1Mi"}}
            for container in pod.spec.containers or ()
            if (milli := milli_of(pod, container.name)) is not None
        ]

    async def listed(request):
        found = samples(request.match_info.get("namespace", ""), request.query.get("labelSelector", ""))
        return web.json_response(
            {"kind": "PodMetricsList", "apiVersion": METRICS.version_of, "metadata": {}, "items": found}
        )

    routes = [
        web.get(f"{METRICS.root}/pods", listed),
        web.get(f"{METRICS.root}/namespaces/{{namespace}}/pods", listed),
    ]
    async with aggregated(cluster, clock, tls, "usage", [METRICS], routes):
        yield
