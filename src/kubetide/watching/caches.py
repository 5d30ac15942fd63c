"""One cache of a kind for all who read it: each object is sent, decoded and held once a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, overload

from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.watching.informer import Informer

T = TypeVar("T")
V = TypeVar("V")


class Caches:
    """The informers of a cluster, one a kind, made when first asked for, also while ``run`` goes on."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._informers: dict[str, Informer[Any]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    @overload
    def of(self, kind: Kind[T]) -> Informer[T]: ...

    @overload
    def of(self, kind: Kind[T], *, keep: Callable[[T], V]) -> Informer[T | V]: ...

    def of(self, kind: Kind[Any], *, keep: Callable[[Any], Any] | None = None) -> Informer[Any]:
        """Gives the informer of a kind, over all namespaces.

        Args:
            keep: For a reader that can do with what this makes of an object, as it can with the object: where
                all readers of the kind say the same, no more is held. See ``Informer``.
        Raises: RuntimeError where others have begun to hold less than this reader wants.
        """
        found = self._informers.get(kind.resource)
        if found is None:
            found = self._informers[kind.resource] = Informer(self._cluster, kind, self._clock, keep=keep)
            if self._tasks is not None:
                self._tasks.create_task(found.run())
        elif found.keep is not keep:
            found.keep_whole()
        return found

    @property
    def all(self) -> tuple[Informer[Any], ...]:
        """All that have been asked for."""
        return tuple(self._informers.values())

    async def run(self) -> None:
        """Keeps all caches until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for informer in self.all:
                self._tasks.create_task(informer.run())
