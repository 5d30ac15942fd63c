"""API groups of a real control plane that a small server of a test answers for, behind the aggregator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import NamedTuple

from aiohttp import web

from kubetide.cluster import HttpCluster
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, NotFound
from kubetide.serving import Listener
from kubetide.units.time import milliseconds, seconds

API_SERVICES = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", dict, namespaced=False)
SERVICES = Kind("", "v1", "Service", "services", dict)

_NAMESPACE = "kube-system"


class Group(NamedTuple):
    """A version of an API group, and the resources that its discovery names."""

    name: str
    version: str
    resources: tuple[Json, ...] = ()

    @property
    def version_of(self) -> str:
        return f"{self.name}/{self.version}"

    @property
    def root(self) -> str:
        return f"/apis/{self.name}/{self.version}"

    @property
    def api_service(self) -> str:
        return f"{self.version}.{self.name}"


@asynccontextmanager
async def aggregated(
    cluster: HttpCluster,
    clock: Clock,
    tls,
    service: str,
    groups: Sequence[Group],
    routes: Iterable[web.RouteDef],
):
    """Serve groups through the API server; return when that answers, and take all away at the end.

    Args:
        cluster: Of an administrator.
        clock: Its time.
        tls: The server's context for localhost.
        service: The name of the Service that the aggregator finds the server by.
        groups: Their discovery is served beside the routes.
        routes: Whole paths.
    """
    app = web.Application()
    app.add_routes([*(web.get(group.root, _discovery(group)) for group in groups), *routes])
    listener = Listener(app)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(listener.close)
        await listener.listen("127.0.0.1", tls=tls)
        _, port = listener.address
        # An external name needs neither kube-proxy nor endpoints: the aggregator resolves it itself.
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        where = {"namespace": _NAMESPACE, "name": service}
        await cluster.create(SERVICES, {"metadata": where, "spec": spec})
        stack.push_async_callback(_delete, cluster, SERVICES, service, _NAMESPACE)
        for group in groups:
            spec = {
                "group": group.name,
                "version": group.version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {**where, "port": port},
            }
            await cluster.create(API_SERVICES, {"metadata": {"name": group.api_service}, "spec": spec})
            stack.push_async_callback(_delete, cluster, API_SERVICES, group.api_service)
        for group in groups:
            await _reached(cluster, clock, group)
        yield


def _discovery(group: Group):
    resources = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group.version_of,
        "resources": group.resources,
    }

    async def answer(_request):
        return web.json_response(resources)

    return answer


async def _delete(cluster: HttpCluster, kind: Kind, name: str, namespace: str = "") -> None:
    with suppress(NotFound):
        await cluster.delete(kind, name, namespace=namespace)


async def _reached(cluster: HttpCluster, clock: Clock, group: Group) -> None:
    """Wait until the aggregator passes requests on, and name the group in discovery."""
    deadline = clock.monotonic() + seconds(30)
    while (problem := await _unreachable(cluster, group)) is not None:
        assert clock.monotonic() < deadline, f"the aggregator does not reach {group.api_service}: {problem}"
        await clock.sleep(milliseconds(100))


async def _unreachable(cluster: HttpCluster, group: Group) -> ApiError | None:
    try:
        for path in (group.root, f"/apis/{group.name}"):
            await cluster.get_raw(path, hasty=True)
    except ApiError as error:
        return error
    return None
