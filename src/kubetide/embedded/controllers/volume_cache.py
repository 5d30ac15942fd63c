"""Caches of all volume objects, and what a snapshot takes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from kubetide.embedded.store import Store
from kubetide.objects.kinds import VOLUME_KINDS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.scheduling import VolumeObjects
from kubetide.watching import Informer, Key

T = TypeVar("T")

VolumeHandler = Callable[[Kind[Any], Key, Any, Any], None]
"""Called with kind, key, and the object before and after."""


class VolumeCache:
    """The informers of claims, volumes, storage classes and CSI objects.

    They ask the cluster nothing before somebody wants them: most runs have no volumes.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.objects = VolumeObjects()
        self._informers: dict[str, Informer[Any]] = {}
        self._handlers: list[VolumeHandler] = []
        self._wanted = asyncio.Event()
        for kind in VOLUME_KINDS:
            informer: Informer[Any] = Informer(cluster, kind, clock)
            informer.on_change(partial(self._changed, kind))
            self._informers[kind.plural] = informer

    def of(self, kind: Kind[T]) -> Informer[T]:
        """Gives the informer of a kind."""
        return cast("Informer[T]", self._informers[kind.plural])

    def want(self) -> None:
        """Says that volumes are in use."""
        self._wanted.set()

    def want_when_used(self, store: Store) -> None:
        """Wants volumes from the first volume object in a store on."""
        for kind in VOLUME_KINDS:
            store.on_change(kind, self.want)
            if store.count(kind):
                self.want()

    async def wanted(self) -> None:
        """Returns once volumes are in use."""
        await self._wanted.wait()

    async def run(self) -> None:
        """Keeps the caches until cancelled, from when they are wanted on."""
        await self.wanted()
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run())

    async def synced(self) -> None:
        """Returns once every kind has been listed; whoever waits for that wants them."""
        self.want()
        for informer in self._informers.values():
            await informer.synced()

    def follow(self, handler: VolumeHandler) -> None:
        """Calls the handler for what is here and for every later change."""
        for kind in VOLUME_KINDS:
            for key, value in self._informers[kind.plural].objects.items():
                handler(kind, key, None, value)
        self._handlers.append(handler)

    def _changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        self.objects.put(kind, key, new)
        for handler in self._handlers:
            handler(kind, key, old, new)
