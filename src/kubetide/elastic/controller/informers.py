"""Caches in which sections of ElasticWorkloads stand among HPAs and VPAs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kubetide.elastic.sections import as_hpa, as_vpa
from kubetide.elastic.verdicts import Other, Scene, other_hpa, other_vpa
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS, VPAS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.watching import Caches, Feed, Informer, Key, Store

T = TypeVar("T")
V = TypeVar("V")

_SHOWN: Final[Mapping[str, Callable[[ElasticWorkload], Any]]] = {HPAS.resource: as_hpa, VPAS.resource: as_vpa}


def _hpa(found: Any) -> Other:
    return found if isinstance(found, Other) else other_hpa(found)


def _vpa(found: Any) -> Other:
    return found if isinstance(found, Other) else other_vpa(found)


class Sections:
    """The objects that sections stand for, kept by the caches of ElasticWorkloads, HPAs and VPAs."""

    def __init__(self, cluster: Cluster, caches: Caches, clock: Clock) -> None:
        self.scene = Scene()
        self.workloads = caches.of(ELASTIC_WORKLOADS)
        self.shown: dict[str, dict[Key, Any]] = {name: {} for name in _SHOWN}
        self._readers: dict[str, list[Callable[[Key, Any], None]]] = {name: [] for name in _SHOWN}
        self._caches, self._cluster, self._clock = caches, cluster, clock
        self.workloads.on_change(lambda key, _, new: self._look(self.scene.put(key, new)))
        self.others = tuple(
            self._follow(kind, keep, read)
            for kind, keep, read in ((HPAS, other_hpa, _hpa), (VPAS, other_vpa, _vpa))
        )

    def _follow(
        self, kind: Kind[Any], keep: Callable[[Any], Other], read: Callable[[Any], Other]
    ) -> Informer[Any]:
        informer: Informer[Any] = self._caches.of(kind, keep=keep)
        informer.on_change(
            lambda key, _, new: self._look(
                self.scene.put_other((kind.kind, *key), None if new is None else read(new))
            )
        )
        return informer

    def _look(self, keys: set[Key]) -> None:
        """Show what the objects stand for now, and nothing of those that are not followed."""
        for key in sorted(keys):
            found = self.scene.workloads.get(key)
            follows = found is not None and not self.scene.verdict(key).reason
            for name, show in _SHOWN.items():
                new = show(found) if found is not None and follows else None
                known = self.shown[name]
                if known.get(key) == new:
                    continue
                if new is None:
                    del known[key]
                else:
                    known[key] = new
                for tell in self._readers[name]:
                    tell(key, new)

    def informer(self, kind: Kind[Any], keep: Callable[[Any], Any] | None) -> Informer[Any]:
        """Return an informer of a kind with the sections that stand for objects of it."""
        return _Merged(self, self._cluster, kind, self._clock, keep, self._caches.of(kind, keep=keep))  # type: ignore[arg-type]  # None is no keep

    def listen(self, kind: Kind[Any], tell: Callable[[Key, Any], None]) -> None:
        """Call ``tell(key, object)`` for each section that is shown as that kind now, and on every change."""
        self._readers[kind.resource].append(tell)
        for key, found in self.shown[kind.resource].items():
            tell(key, found)


class _Merged(Informer[Any]):
    """An informer whose objects are those of another one and sections."""

    def __init__(
        self,
        sections: Sections,
        cluster: Cluster,
        kind: Kind[Any],
        clock: Clock,
        keep: Callable[[Any], Any] | None,
        inner: Informer[Any],
    ) -> None:
        super().__init__(cluster, kind, clock, keep=keep, beside=inner)
        self._sections, self._inner, self._wanted = sections, inner, keep
        self._merged: Store[Any] = Store(None)
        for key, value in inner.objects.items():
            self._merged.put(key, value)
        inner.on_change(lambda key, _, new: self._put_object(key, new))
        sections.listen(kind, self._put_section)

    def _put_object(self, key: Key, new: Any) -> None:
        shown = self._sections.shown[self.kind.resource].get(key) if new is None else None
        self._merged.put(key, new if shown is None else self._kept(shown))

    def _put_section(self, key: Key, new: Any) -> None:
        if key not in self._inner.objects:
            self._merged.put(key, None if new is None else self._kept(new))

    def _kept(self, found: Any) -> Any:
        keep = self._inner.keep
        return found if keep is None else keep(found)

    @property
    def objects(self) -> Mapping[Key, Any]:
        """The objects by (namespace, name): a live, read-only view."""
        return self._merged.view

    async def synced(self) -> None:
        """Return once the first lists have been taken in; that of ElasticWorkloads may have been refused."""
        await super().synced()
        await self._sections.workloads.answered()

    async def answered(self) -> None:
        """Return once the first lists have been taken in or refused."""
        await super().answered()
        await self._sections.workloads.answered()

    def feed(self) -> Feed[Any]:
        """Open a feed; what is here already is its first content."""
        return self._merged.feed()

    def close_feed(self, feed: Feed[Any]) -> None:
        """End a feed."""
        self._merged.close_feed(feed)

    def on_change(self, handler: Callable[[Key, Any, Any], None]) -> None:
        """Call ``handler(key, old, new)`` on every change; None stands for not there. Must not raise or block."""
        self._merged.on_change(handler)


class ElasticCaches(Caches):
    """Caches whose HPAs and VPAs hold the sections too; all others are those of ``inner``, which somebody else runs."""

    def __init__(self, cluster: Cluster, clock: Clock, inner: Caches, sections: Sections) -> None:
        super().__init__(cluster, clock)
        self._inner = inner
        self._sections = sections

    def of(
        self, kind: Kind[Any], *, keep: Callable[[Any], Any] | None = None, fields: str = ""
    ) -> Informer[Any]:
        """Return an informer of a kind."""
        if kind.resource in _SHOWN and not fields:
            return self._sections.informer(kind, keep)
        return self._inner.of(kind, keep=keep, fields=fields)  # type: ignore[arg-type]  # None is no keep

    @property
    def all(self) -> tuple[Informer[Any], ...]:
        """One of each kind that has been asked for."""
        return self._inner.all

    async def run(self) -> None:
        """Keep all caches until cancelled."""
        await self._inner.run()
