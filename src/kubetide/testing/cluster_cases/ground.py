"""What the cases stand on: a namespace of their own, expected errors, patience, a watch being read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple

from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS, NAMESPACES, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.testing import builders
from kubetide.units.time import Duration, milliseconds, seconds, to_seconds

Case = Callable[[Cluster, Clock], Awaitable[None]]

NO_NODE = "battery-no-such-node"
"""Pods may be bound to a node that is not there; nothing will run or end them."""

# A real control plane puts this ConfigMap into every new namespace.
_ROOT_CA = "kube-root-ca.crt"

# Far more than anything takes, also on a machine with much else to do: it ends only waits that are in vain.
_PATIENCE = seconds(180)
_POLL = milliseconds(50)


@asynccontextmanager
async def scratch(cluster: Cluster) -> AsyncIterator[str]:
    """Return a new namespace of a unique name, which is deleted at the end."""
    home = await cluster.create(NAMESPACES, {"metadata": {"generateName": "battery-"}})
    name = home.metadata.name
    try:
        yield name
    finally:
        with suppress(NotFound):  # the case may have deleted it itself
            await cluster.delete(NAMESPACES, name)


class Refusal:
    """What ``refused`` caught."""

    def __init__(self) -> None:
        self.error = ApiError("")


@contextmanager
def refused(*kinds: type[ApiError]) -> Iterator[Refusal]:
    """Expect the block to be refused with one of these errors."""
    refusal = Refusal()
    try:
        yield refusal
    except kinds as error:
        refusal.error = error
        return
    names = " or ".join(kind.__name__ for kind in kinds)
    raise AssertionError(f"expected {names}, but the request was accepted")


async def eventually(clock: Clock, what: str, check: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the check holds: what controllers do may take them a moment."""
    deadline = Duration(clock.monotonic() + _PATIENCE)
    while not await check():
        assert clock.monotonic() < deadline, f"waited in vain: {what}"
        await clock.sleep(_POLL)


async def exists(cluster: Cluster, kind: Kind[Any], name: str, namespace: str) -> bool:
    """Return whether the object is there."""
    try:
        await cluster.get(kind, name, namespace=namespace)
    except NotFound:
        return False
    return True


async def goes(cluster: Cluster, clock: Clock, kind: Kind[Any], name: str, namespace: str) -> None:
    """Wait until the object is not there."""

    async def gone() -> bool:
        return not await exists(cluster, kind, name, namespace)

    await eventually(clock, f"{kind.kind} {name} is gone", gone)


async def config_map(cluster: Cluster, namespace: str, name: str, **more: Any) -> Any:
    """Create a ConfigMap."""
    return await cluster.create(CONFIG_MAPS, builders.config_map(name, **more), namespace=namespace)


def own_pod(name: str, **more: Any) -> Json:
    """Return a pod that no scheduler binds by itself."""
    extra: Json = more.pop("extra", None) or {}
    spec = {"schedulerName": "battery-scheduler", **extra.pop("spec", {})}
    return builders.pod(name, extra={**extra, "spec": spec}, **more)


class Seen(NamedTuple):
    """An event of an object; ``object`` is of the kind's type and never None, as it is in bookmarks."""

    type: str
    object: Any
    resource_version: str
    namespace: str
    name: str


class Reader:
    """A watch that is being read."""

    def __init__(self, stream: AsyncGenerator[Any, None]) -> None:
        self._stream = stream
        self._events: list[Seen] = []

    async def next(self) -> Seen:
        """Return the next event of an object that the case made."""
        while not self._events:
            batch = await asyncio.wait_for(anext(self._stream), to_seconds(_PATIENCE))
            self._events += [
                Seen(*event) for event in batch if event.type != "BOOKMARK" and event.name != _ROOT_CA
            ]
        return self._events.pop(0)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event.type, event.name) for event in events]


@asynccontextmanager
async def watching(
    cluster: Cluster,
    kind: Kind[Any],
    version: str,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
) -> AsyncIterator[Reader]:
    """Open a watch and closes it at the end."""
    stream = cluster.watch(kind, resource_version=version, namespace=namespace, labels=labels, fields=fields)
    async with aclosing(stream):
        yield Reader(stream)
