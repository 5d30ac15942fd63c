"""Shown objects: HPAs and VPAs that represent other objects, in caches and in a cluster that writes to their owners.

What is shown belongs to an object of another kind, its owner. A loop that reads caches and writes statuses and events
takes it for an object of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from kubetide.loop import Owners
from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS, HPAS, Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.watching import Caches, Feed, Informer, Store


class Shown:
    """The shown objects by resource and key, and their listeners."""

    def __init__(self, kinds: Collection[Kind[Any]]) -> None:
        self.kinds = {kind.kind: kind for kind in kinds}
        self.by_resource: dict[str, dict[Key, Any]] = {kind.resource: {} for kind in kinds}
        self._readers: dict[str, list[Callable[[Key, Any], None]]] = {kind.resource: [] for kind in kinds}

    def show(self, kind: Kind[Any], key: Key, new: Any) -> None:
        """Show an object from now on; None hides it."""
        known = self.by_resource[kind.resource]
        if known.get(key) == new:
            return
        if new is None:
            del known[key]
        else:
            known[key] = new
        for tell in self._readers[kind.resource]:
            tell(key, new)

    def listen(self, kind: Kind[Any], tell: Callable[[Key, Any], None]) -> None:
        """Call ``tell(key, object)`` for each object of the kind that is shown now, and on every change."""
        self._readers[kind.resource].append(tell)
        for key, found in self.by_resource[kind.resource].items():
            tell(key, found)


class Owner(Protocol):
    """The owner of shown objects: receives their statuses and events.

    Attributes:
        kind: Of the owners.
        source: The cache of the owners; it may be refused.
    """

    kind: Kind[Any]
    source: Informer[Any]

    def name_of(self, shown: Key) -> str:
        """Return the name of the owner of a shown object."""
        ...

    async def put_status(self, kind: Kind[Any], key: Key, patch: Json | Sequence[Json]) -> Any:
        """Apply the status patch of a shown object."""
        ...


class _Merged(Informer[Any]):
    """An informer whose objects are those of another one, and those that are shown."""

    def __init__(
        self,
        shown: Shown,
        owner: Owner,
        cluster: Cluster,
        kind: Kind[Any],
        clock: Clock,
        keep: Callable[[Any], Any] | None,
        inner: Informer[Any],
    ) -> None:
        super().__init__(cluster, kind, clock, keep=keep, beside=inner)
        self._shown, self._owner, self._inner = shown.by_resource[kind.resource], owner, inner
        self._merged: Store[Any] = Store(None)
        for key, value in inner.objects.items():
            self._merged.put(key, value)
        inner.on_change(lambda key, _, new: self._put_object(key, new))
        shown.listen(kind, self._put_shown)

    def _put_object(self, key: Key, new: Any) -> None:
        shown = self._shown.get(key) if new is None else None
        self._merged.put(key, new if shown is None else self._trimmed(shown))

    def _put_shown(self, key: Key, new: Any) -> None:
        if key not in self._inner.objects:
            self._merged.put(key, None if new is None else self._trimmed(new))

    def _trimmed(self, found: Any) -> Any:
        keep = self._inner.keep
        return found if keep is None else keep(found)

    @property
    def objects(self) -> Mapping[Key, Any]:
        """The objects by (namespace, name): a live, read-only view."""
        return self._merged.view

    async def synced(self) -> None:
        """Return once the first lists have been taken in; that of the owners may have been refused."""
        await super().synced()
        await self._owner.source.answered()

    async def answered(self) -> None:
        """Return once the first lists have been taken in or refused."""
        await super().answered()
        await self._owner.source.answered()

    def feed(self) -> Feed[Any]:
        """Open a feed; what is here already is its first content."""
        return self._merged.feed()

    def close_feed(self, feed: Feed[Any]) -> None:
        """End a feed."""
        self._merged.close_feed(feed)

    def on_change(self, handler: Callable[[Key, Any, Any], None]) -> None:
        """Call ``handler(key, old, new)`` on every change; None stands for not there. Must not raise or block."""
        self._merged.on_change(handler)


class ShownCaches(Caches):
    """Caches that also hold the shown objects; all else comes from ``inner``, which somebody else runs."""

    def __init__(self, cluster: Cluster, clock: Clock, inner: Caches, shown: Shown, owner: Owner) -> None:
        super().__init__(cluster, clock)
        self._inner = inner
        self._of = cluster, clock
        self._shown, self._owner = shown, owner

    def of(
        self,
        kind: Kind[Any],
        *,
        keep: Callable[[Any], Any] | None = None,
        fields: str = "",
        namespace: str = "",
    ) -> Informer[Any]:
        """Return an informer of a kind; the owners' kind has its own."""
        if kind.resource == self._owner.kind.resource:
            return self._owner.source
        inner: Informer[Any] = self._inner.of(kind, keep=keep, fields=fields, namespace=namespace)  # type: ignore[arg-type]  # None is no keep
        if kind.resource not in self._shown.by_resource or fields:
            return inner
        cluster, clock = self._of
        return _Merged(self._shown, self._owner, cluster, kind, clock, keep, inner)

    @property
    def all(self) -> tuple[Informer[Any], ...]:
        """One informer of each kind that was asked for."""
        return self._inner.all

    async def run(self) -> None:
        """Update all caches until cancelled."""
        await self._inner.run()


class ShownCluster:
    """A cluster that redirects writes of shown objects' statuses and events to their owners."""

    def __init__(self, inner: Cluster, shown: Shown, owner: Owner) -> None:
        self._inner = inner
        self._shown, self._owner = shown, owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def patch(self, kind: Kind[Any], name: str, patch: Json | Sequence[Json], **how: Any) -> Any:
        """Patch an object; the status of a shown one goes to its owner."""
        key = (how.get("namespace", ""), name)
        if how.get("subresource") == "status" and key in self._shown.by_resource.get(kind.resource, {}):
            return await self._owner.put_status(kind, key, patch)
        return await self._inner.patch(kind, name, patch, **how)

    async def create(self, kind: Kind[Any], body: Json, **how: Any) -> Any:
        """Create an object; an event about a shown one becomes one about its owner."""
        if kind.resource == EVENTS.resource:
            body = self._about(body)
        return await self._inner.create(kind, body, **how)

    def _about(self, event: Json) -> Json:
        involved = event.get("involvedObject") or {}
        kind = self._shown.kinds.get(involved.get("kind", ""))
        key = involved.get("namespace", ""), involved.get("name", "")
        if kind is None or key not in self._shown.by_resource[kind.resource]:
            return event
        owner = self._owner.kind
        own = {"apiVersion": owner.api_version, "kind": owner.kind, "name": self._owner.name_of(key)}
        return {**event, "involvedObject": {**involved, **own}}


class ShownOwners:
    """Who serves an HPA: shown ones are ours, because no other controller sees them."""

    def __init__(self, inner: Owners, shown: Shown) -> None:
        self._inner = inner
        self._shown: Mapping[Key, Any] = shown.by_resource[HPAS.resource]

    def left_alone(self) -> Collection[Key]:
        """Return the objects that must not be changed now."""
        return [key for key in self._inner.left_alone() if key not in self._shown]

    def why(self, key: Key) -> str:
        """Return why an object is left alone."""
        return self._inner.why(key)

    def knows(self, key: Key) -> bool:
        """Return whether the object has been seen."""
        return key in self._shown or self._inner.knows(key)
