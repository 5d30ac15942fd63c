"""ElasticWorkloads with the statuses that this process would have written if it did more than advise.

The schedule's bounds and whether an object is followed go from loop to loop by way of its status. A run that only advises
writes none, and decides from what it would have written, so that its advice says what acting would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.elastic import ElasticStatus, ElasticWorkload
from kubetide.objects.kinds import ELASTIC_WORKLOADS, Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Withheld
from kubetide.units.patch import merge_patch
from kubetide.watching import Feed, Informer, Store


class AdvisedWorkloads(Informer[ElasticWorkload]):
    """The cache of ElasticWorkloads, each with its withheld status."""

    def __init__(self, cluster: Cluster, clock: Clock, inner: Informer[ElasticWorkload]) -> None:
        super().__init__(cluster, ELASTIC_WORKLOADS, clock, beside=inner)
        self._inner = inner
        self._held: dict[Key, Json] = {}
        self._shown: Store[ElasticWorkload] = Store(None)
        inner.on_change(lambda key, _, new: self._put(key, new))

    def hold(self, key: Key, status: Json) -> None:
        """Apply the merge patch of a status here, as if it had been written."""
        found = self._shown.objects.get(key)
        if found is not None:
            merged = merge_patch(msgspec.to_builtins(found.status), status)
            self._held[key] = {**self._held.get(key, {}), **{name: merged.get(name) for name in status}}
            self._put(key, self._inner.objects.get(key))

    def let_go(self, key: Key) -> None:
        """Show the object's own status again, because one has been written."""
        if self._held.pop(key, None) is not None:
            self._put(key, self._inner.objects.get(key))

    def _put(self, key: Key, found: ElasticWorkload | None) -> None:
        held = self._held.get(key)
        if found is None:
            self._held.pop(key, None)
        elif held is not None:
            status = msgspec.convert({**msgspec.to_builtins(found.status), **held}, ElasticStatus)
            found = msgspec.structs.replace(found, status=status)
        self._shown.put(key, found)

    @property
    def objects(self) -> Mapping[Key, ElasticWorkload]:
        """The objects by (namespace, name): a live, read-only view."""
        return self._shown.view

    def feed(self) -> Feed[ElasticWorkload]:
        """Open a feed; the present objects are its first content."""
        return self._shown.feed()

    def close_feed(self, feed: Feed[ElasticWorkload]) -> None:
        """End a feed."""
        self._shown.close_feed(feed)

    def on_change(
        self, handler: Callable[[Key, ElasticWorkload | None, ElasticWorkload | None], None]
    ) -> None:
        """Call ``handler(key, old, new)`` on every change; None means absent. Must not raise or block."""
        self._shown.on_change(handler)


class AdvisedCluster:
    """A cluster that holds the withheld statuses of ElasticWorkloads."""

    def __init__(self, inner: Cluster, workloads: AdvisedWorkloads) -> None:
        self._inner = inner
        self._workloads = workloads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def patch(self, kind: Kind[Any], name: str, patch: Json | Sequence[Json], **how: Any) -> Any:
        """Patch an object. Raises Withheld, and all that a cluster raises."""
        key = (how.get("namespace", ""), name)
        merged = patch if kind.resource == ELASTIC_WORKLOADS.resource and isinstance(patch, dict) else None
        try:
            found = await self._inner.patch(kind, name, patch, **how)
        except Withheld:
            if merged is not None and how.get("subresource") == "status":
                self._workloads.hold(key, merged["status"])
            raise
        if merged is not None:
            self._workloads.let_go(key)
        return found
