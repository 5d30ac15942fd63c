"""One cache of a kind for all who read it: each object is sent, decoded and held once a process."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.watching.informer import Informer

T = TypeVar("T")


class Caches:
    """The informers of a cluster, one a kind, made when first asked for, also while ``run`` goes on."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._informers: dict[str, Informer[Any]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def of(self, kind: Kind[T]) -> Informer[T]:
        """Gives the informer of a kind, over all namespaces."""
        found = self._informers.get(kind.resource)
        if found is None:
            found = self._informers[kind.resource] = Informer(self._cluster, kind, self._clock)
            if self._tasks is not None:
                self._tasks.create_task(found.run())
        return cast("Informer[T]", found)

    @property
    def all(self) -> tuple[Informer[Any], ...]:
        """All that have been asked for."""
        return tuple(self._informers.values())

    async def run(self) -> None:
        """Keeps all caches until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for informer in self.all:
                self._tasks.create_task(informer.run())
