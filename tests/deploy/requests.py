"""What is asked of a cluster, in the terms of RBAC: seen at the Cluster port, or by the server that is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.horizontal.running import World as HorizontalWorld

from kubetide.embedded.apiserver.http import User
from kubetide.embedded.apiserver.http.access import Rule
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.objects.kinds import PODS
from kubetide.ports.errors import Forbidden
from kubetide.watching import Caches

ACCOUNT = "system:serviceaccount:kube-system:kubetide"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")


class Request(NamedTuple):
    """A verb on a resource (with its subresource after a slash); empty namespace and name for all."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


def observed_horizontal(clock, *, measures=False, advises=False):
    """Return the world of a horizontal loop, and the set that its requests are noted in."""
    world, seen = HorizontalWorld(clock), set()
    observed = Observed(world.cluster, seen)
    world.caches = Caches(observed, clock)
    world.controller = HorizontalController(
        observed,
        world.usage,
        clock,
        world.recorder,
        world.board,
        HorizontalSettings(),
        caches=world.caches,
        custom=world.measured if measures else None,
        external=world.measured if measures else None,
        advises=advises,
    )
    return world, seen


class Observed:
    """A Cluster that notes each request and hands it on."""

    def __init__(self, inner, seen):
        self._inner, self._seen = inner, seen

    def _note(self, verb, kind, namespace="", name="", subresource=""):
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        self._seen.add(Request(verb, kind.group, resource, namespace, name))

    async def kinds(self):
        return await self._inner.kinds()  # discovery, which every account may read

    async def get(self, kind, name, *, namespace=""):
        self._note("get", kind, namespace, name)
        return await self._inner.get(kind, name, namespace=namespace)

    async def list(self, kind, **where):
        self._note("list", kind, where.get("namespace", ""))
        return await self._inner.list(kind, **where)

    def watch(self, kind, **where):
        self._note("watch", kind, where.get("namespace", ""))
        return self._inner.watch(kind, **where)

    async def create(self, kind, body, *, namespace="", dry_run=False):
        self._note("create", kind, namespace)
        return await self._inner.create(kind, body, namespace=namespace, dry_run=dry_run)

    async def replace(self, kind, body, *, namespace="", subresource=""):
        self._note("update", kind, namespace, body["metadata"]["name"], subresource)
        return await self._inner.replace(kind, body, namespace=namespace, subresource=subresource)

    async def patch(self, kind, name, patch, *, namespace="", subresource="", **more):
        self._note("patch", kind, namespace, name, subresource)
        return await self._inner.patch(
            kind, name, patch, namespace=namespace, subresource=subresource, **more
        )

    async def delete(self, kind, name, *, namespace="", **more):
        self._note("delete", kind, namespace, name)
        await self._inner.delete(kind, name, namespace=namespace, **more)

    async def get_scale(self, kind, name, *, namespace):
        self._note("get", kind, namespace, name, "scale")
        return await self._inner.get_scale(kind, name, namespace=namespace)

    async def replace_scale(self, kind, name, replicas, *, namespace, **more):
        self._note("update", kind, namespace, name, "scale")
        return await self._inner.replace_scale(kind, name, replicas, namespace=namespace, **more)

    async def evict(self, *, namespace, pod, **more):
        self._note("create", PODS, namespace, pod, "eviction")
        await self._inner.evict(namespace=namespace, pod=pod, **more)


class Granted(NamedTuple):
    """One verb on one resource that a role grants; empty namespace for all, empty names for any."""

    role: str
    verb: str
    group: str
    resource: str
    namespace: str = ""
    names: tuple[str, ...] = ()

    def allows(self, request):
        """Decide as the RBAC authorizer does; a request for a collection has no name."""
        base, _, subresource = request.resource.partition("/")
        resources = {"*", request.resource} | ({f"*/{subresource}"} if subresource else {base})
        return (
            request.verb == self.verb
            and self.group in {"*", request.group}
            and self.resource in resources
            and (not self.namespace or self.namespace == request.namespace)
            and (not self.names or request.name in self.names)
        )


def rows(verbs, group, resources, namespace="", names=()):
    """Return the grants of a rule of a role."""
    return {Granted("", verb, group, one, namespace, names) for verb in verbs for one in resources}


class OnlyGranted:
    """What is asked of an ``Observed`` cluster; what is not granted is refused."""

    def __init__(self, granted):
        self._granted = granted

    def add(self, request):
        if not any(one.allows(request) for one in self._granted):
            raise Forbidden(f'{request.resource} "{request.name}" is forbidden: cannot {request.verb}')


def granted_by(objects):
    """Return all that the rendered roles grant, one by one."""
    return {
        Granted(
            f"{one['kind']} {one['metadata']['name']}",
            verb,
            group,
            resource,
            one["metadata"].get("namespace", ""),
            tuple(rule.get("resourceNames", ())),
        )
        for one in objects
        if one["kind"] in {"Role", "ClusterRole"}
        for rule in one["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


@dataclass(frozen=True)
class Watched(Rule):
    """A rule of the embedded server's allow-list: what the roles grant, and a note of all that was asked."""

    granted: frozenset = frozenset()
    seen: set = field(default_factory=set, hash=False, compare=False)

    def allows(self, wish):
        request = Request(wish.verb, wish.group, wish.resource, wish.namespace, wish.name)
        self.seen.add(request)
        return any(one.allows(request) for one in self.granted)


def account_of(granted, seen):
    """Return the account of the chart with these rights; what it asks for goes into ``seen``."""
    return User(ACCOUNT, GROUPS, (Watched(granted=frozenset(granted), seen=seen),))
