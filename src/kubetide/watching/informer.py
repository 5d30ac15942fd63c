"""A typed cache of one kind, by list and watch over the Cluster port.

What it promises: after ``synced``, ``objects`` is the state of the cluster at some version, and it
moves forward only; every change of an object reaches each feed (of what the cache holds of it, where that is less),
though changes that come close together may arrive as one. What it does not promise: any order between objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from kubetide.objects.kinds import Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, UnreadableObject
from kubetide.units.time import Instant
from kubetide.watching.reflector import Reflector, Relist
from kubetide.watching.store import Feed, Keep, Store

T = TypeVar("T")


class Informer(Generic[T]):
    """Keeps ``objects`` equal to the cluster's objects of one kind."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind[T],
        clock: Clock,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[T], Any] | None = None,
        beside: Informer[Any] | None = None,
    ) -> None:
        """Prepare the informer; it sends no request before ``run``.

        Args:
            keep: What is held and handed out in place of each object: something with its ``metadata``,
                or with ``namespace`` and ``name`` of its own. Only behind a network: a cluster of the same
                process holds the objects anyway. Nobody but the ``keep`` of other readers gets the object, so equal
                parts of it may be put in place of its own; what it says must stay. Must not raise.
            beside: An informer of the same, whose list and watch this one shares: each object is sent and decoded
                once, and each of the two has what it keeps of it. Where one of them holds whole objects both do.
        Raises: RuntimeError where the other one runs already, and nobody keeps the same.
        """
        self.kind: Kind[Any] = kind
        self._reflector: Reflector = (
            beside._reflector  # noqa: SLF001  # of the same class
            if beside is not None
            else Reflector(cluster, kind, clock, namespace=namespace, labels=labels, fields=fields)
        )
        self._store: Store[T] = self._reflector.store(keep)

    @property
    def keep(self) -> Keep | None:
        """The function that reduces each object for storage; None for whole objects."""
        return self._store.keep

    @property
    def objects(self) -> Mapping[Key, T]:
        """The objects by (namespace, name): a live, read-only view."""
        return self._store.view

    @property
    def has_synced(self) -> bool:
        """Whether a list has been stored."""
        return self._reflector.synced.is_set()

    @property
    def last_received(self) -> Instant | None:
        """When the server last sent anything of this kind; None before the first list."""
        return self._reflector.last_received

    @property
    def last_relist(self) -> Relist | None:
        """The result of the last list; None before the second one."""
        return self._reflector.last_relist

    @property
    def failures(self) -> int:
        """The number of failed lists and watches in a row."""
        return self._reflector.failures

    @property
    def last_error(self) -> str:
        """The error of the last of them; empty if there is none."""
        return self._reflector.last_error

    @property
    def refused(self) -> bool:
        """Whether the last of them was refused: the kind may not be read, or is not served."""
        return self._reflector.refused

    @property
    def unread(self) -> Mapping[Key, UnreadableObject]:
        """The objects that cannot be read; ``objects`` has the last state of each that could, if there was one."""
        return self._reflector.unread

    async def synced(self) -> None:
        """Return once the first list has been stored."""
        await self._reflector.synced.wait()

    async def answered(self) -> None:
        """Return once the first list has been stored or refused: for optional kinds."""
        await self._reflector.answered.wait()

    def feed(self) -> Feed[T]:
        """Open a feed; the present objects are its first content."""
        return self._store.feed()

    def close_feed(self, feed: Feed[T]) -> None:
        """End a feed."""
        self._store.close_feed(feed)

    def on_change(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        """Call ``handler(key, old, new)`` on every change; None means absent. Must not raise or block."""
        self._store.on_change(handler)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the cache up to date inside the block."""
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def run(self) -> None:
        """List and watch until cancelled; of informers of the same kind one runs for all."""
        await self._reflector.run()
