"""Who scales the targets of HPAs: one watch per kind that an HPA names, started with the first of it.

Deployments are always watched. Other kinds are found as the HPA loop finds them: the version of a reference plays no
part, and what is not built in is asked of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kubetide.objects.kinds import DEPLOYMENTS, REPLICATION_CONTROLLERS, STORED_KINDS, Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.runtime.handover.ownership import (
    DEPLOYMENT,
    ManagedWorkload,
    ScaleView,
    Target,
    TargetKind,
    scale_view_of,
)
from kubetide.units.time import seconds
from kubetide.watching import Informer

_ASK_AGAIN = seconds(30)
"""As often as the HPA loop asks what the cluster serves."""

_BUILT_IN = {(kind.group, kind.kind.lower()): kind for kind in (*STORED_KINDS, REPLICATION_CONTROLLERS)}


def managed(kind: Kind[Any]) -> Kind[ManagedWorkload]:
    """Return a kind that reads only the fields that show who scales its objects."""
    return Kind(kind.group, kind.version, kind.kind, kind.plural, ManagedWorkload, namespaced=kind.namespaced)


async def found_kinds(cluster: Cluster, requested: Iterable[TargetKind]) -> dict[TargetKind, Kind[Any]]:
    """Return the kinds that exist. Raises ApiError if discovery fails."""
    requested = set(requested)
    found = {one: _BUILT_IN[one] for one in requested & _BUILT_IN.keys()}
    if requested - found.keys():
        served = {(kind.group, kind.kind.lower()): kind for kind in await cluster.kinds()}
        found |= {one: served[one] for one in (requested - found.keys()) & served.keys()}
    return found


async def scale_views(cluster: Cluster, requested: Iterable[TargetKind], own: str) -> dict[Target, ScaleView]:
    """Return which others have scaled each object of the kinds; kinds that may not be listed count as not scaled by others.

    Raises: ApiError where not even Deployments can be listed.
    """
    kinds = await found_kinds(cluster, {DEPLOYMENT, *requested})
    views: dict[Target, ScaleView] = {}
    for target, kind in kinds.items():
        try:
            items = (await cluster.list(managed(kind))).items
        except ApiError:
            if target == DEPLOYMENT:
                raise
            continue
        for one in items:
            views[*target, one.metadata.namespace, one.metadata.name] = scale_view_of(one, own)
    return views


class ScaleWatch:
    """Watches Deployments, and each other kind once it is requested.

    Args:
        own: The manager that this process's writes are noted under.
        changed: Called with an object's place and who else has scaled it, None where nobody has; ``synced`` says
            whether that came after the first list.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        own: str,
        changed: Callable[[Target, ScaleView | None, bool], None],
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._own = own
        self._changed = changed
        self._informers: dict[TargetKind, Informer[Any]] = {}
        self._requested: set[TargetKind] = set()
        self._stirred = asyncio.Event()
        self._problem = ""
        self._begin(DEPLOYMENT, DEPLOYMENTS)

    def want(self, kind: TargetKind) -> None:
        """Watch a kind from now on."""
        if kind not in self._informers and kind not in self._requested:
            self._requested.add(kind)
            self._stirred.set()

    @property
    def has_synced(self) -> bool:
        """Whether Deployments are synced; other kinds are optional."""
        return self._informers[DEPLOYMENT].has_synced

    @property
    def problems(self) -> dict[str, str]:
        """The kinds that cannot be watched, and why."""
        found = {
            one.kind.resource: one.last_error if one.failures else "" for one in self._informers.values()
        }
        return {**found, "what HPAs scale": self._problem}

    async def answered(self) -> None:
        """Return once Deployments are synced, and the other kinds in use are synced or refused."""
        await self._informers[DEPLOYMENT].synced()
        for informer in tuple(self._informers.values()):
            await informer.answered()

    async def run(self) -> None:
        """Watch, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informers[DEPLOYMENT].run())
            while True:
                await self._find(tasks)
                if not self._requested:
                    await self._stirred.wait()
                else:
                    await self._clock.sleep(_ASK_AGAIN)
                self._stirred.clear()

    async def _find(self, tasks: asyncio.TaskGroup) -> None:
        if not self._requested:
            return
        try:
            found = await found_kinds(self._cluster, self._requested)
            self._problem = ""
        except ApiError as error:
            self._problem = str(error)
            return
        for target, kind in found.items():
            self._requested.discard(target)
            tasks.create_task(self._begin(target, kind).run())

    def _begin(self, target: TargetKind, kind: Kind[Any]) -> Informer[Any]:
        informer = Informer(
            self._cluster, managed(kind), self._clock, keep=lambda item: scale_view_of(item, self._own)
        )
        informer.on_change(partial(self._brought, target))
        self._informers[target] = informer
        return informer

    def _brought(self, target: TargetKind, key: Key, _old: Any, new: Any) -> None:
        # A cluster of the same process gives whole objects.
        view = scale_view_of(new, self._own) if isinstance(new, ManagedWorkload) else new
        seen = None if view is None or not view.foreign else view
        self._changed((*target, *key), seen, self._informers[target].has_synced)
