"""Caches of kinds that most runs have no objects of; they send no request before their first use."""

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
    """The informers of some kinds, started together at their first use."""

    def __init__(self, cluster: Cluster, clock: Clock, kinds: Sequence[Kind[Any]]) -> None:
        self._kinds = kinds
        self._informers: dict[str, Informer[Any]] = {}
        self._handlers: list[Handler] = []
        self._started = asyncio.Event()
        for kind in kinds:
            informer: Informer[Any] = Informer(cluster, kind, clock)
            informer.on_change(partial(self._changed, kind))
            self._informers[kind.plural] = informer

    def of(self, kind: Kind[T]) -> Informer[T]:
        """Return the informer of a kind."""
        return cast("Informer[T]", self._informers[kind.plural])

    def start(self) -> None:
        """Start the informers: objects of these kinds are in use."""
        self._started.set()

    @property
    def is_started(self) -> bool:
        """Whether the informers were started."""
        return self._started.is_set()

    def start_when_stored(self, store: Store) -> None:
        """Start the informers once a store holds an object of these kinds."""
        for kind in self._kinds:
            store.on_change(kind, self.start)
            if store.count(kind):
                self.start()

    async def started(self) -> None:
        """Return once the informers were started."""
        await self._started.wait()

    async def run(self) -> None:
        """Keep the caches up to date until cancelled, from their first use on."""
        await self.started()
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run())

    async def synced(self) -> None:
        """Start the informers and return once every kind has been listed."""
        self.start()
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
