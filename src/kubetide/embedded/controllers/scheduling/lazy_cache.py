"""Caches of kinds that most runs have no objects of: they ask the cluster nothing before somebody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from kubetide.embedded.apiserver.store import Store
from kubetide.objects.kinds import Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.watching import Informer

T = TypeVar("T")

Handler = Callable[[Kind[Any], Key, Any, Any], None]
"""Called with kind, key, and the object before and after."""


class LazyCache:
    """The informers of some kinds, started together."""

    def __init__(self, cluster: Cluster, clock: Clock, kinds: Sequence[Kind[Any]]) -> None:
        self._kinds = kinds
        self._informers: dict[str, Informer[Any]] = {}
        self._handlers: list[Handler] = []
        self._wanted = asyncio.Event()
        for kind in kinds:
            informer: Informer[Any] = Informer(cluster, kind, clock)
            informer.on_change(partial(self._changed, kind))
            self._informers[kind.plural] = informer

    def of(self, kind: Kind[T]) -> Informer[T]:
        """Return the informer of a kind."""
        return cast("Informer[T]", self._informers[kind.plural])

    def want(self) -> None:
        """Say that objects of these kinds are in use."""
        self._wanted.set()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody has said so."""
        return self._wanted.is_set()

    def want_when_used(self, store: Store) -> None:
        """Want them from the first object in a store on."""
        for kind in self._kinds:
            store.on_change(kind, self.want)
            if store.count(kind):
                self.want()

    async def wanted(self) -> None:
        """Return once they are in use."""
        await self._wanted.wait()

    async def run(self) -> None:
        """Keep the caches up to date until cancelled, from their first use on."""
        await self.wanted()
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run())

    async def synced(self) -> None:
        """Return once every kind has been listed; whoever waits for that wants them."""
        self.want()
        for informer in self._informers.values():
            await informer.synced()

    def follow(self, handler: Handler) -> None:
        """Call the handler for what is here and for every later change."""
        for kind in self._kinds:
            for key, value in self._informers[kind.plural].objects.items():
                handler(kind, key, None, value)
        self._handlers.append(handler)

    def _changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        for handler in self._handlers:
            handler(kind, key, old, new)
