"""One cache per kind for all readers: each object is received and decoded once per process, and stored as small as possible."""

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
    """The informers of a cluster, one watch per kind, started on first use, also during ``run``."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._informers: dict[str, Informer[Any]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    @overload
    def of(self, kind: Kind[T], *, fields: str = "", namespace: str = "") -> Informer[T]: ...

    @overload
    def of(
        self, kind: Kind[T], *, keep: Callable[[T], V], fields: str = "", namespace: str = ""
    ) -> Informer[T | V]: ...

    def of(
        self,
        kind: Kind[Any],
        *,
        keep: Callable[[Any], Any] | None = None,
        fields: str = "",
        namespace: str = "",
    ) -> Informer[Any]:
        """Return an informer of a kind; list and watch are one for all readers of it.

        Args:
            keep: For a reader that can do with what this makes of an object, as it can with the object: where
                no reader of the kind wants whole objects, each has its own, and no more is held. See ``Informer``.
            fields: Field selector; each has a list and watch of its own.
            namespace: The only one that is read; empty for all. Each has a list and watch of its own, too.
        Raises: RuntimeError where less than this reader wants is held since the first list.
        """
        name = f"{namespace}/{kind.resource}?{fields}"
        first = self._informers.get(name)
        made: Informer[Any] = Informer(
            self._cluster, kind, self._clock, namespace=namespace, fields=fields, keep=keep, beside=first
        )
        if first is None:
            self._informers[name] = made
            if self._tasks is not None:
                self._tasks.create_task(made.run())
        return made

    @property
    def all(self) -> tuple[Informer[Any], ...]:
        """One informer of each kind that was asked for."""
        return tuple(self._informers.values())

    async def run(self) -> None:
        """Update all caches until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for informer in self.all:
                self._tasks.create_task(informer.run())
