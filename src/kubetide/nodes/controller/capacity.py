"""Gathers capacity requests and their PodTemplates, if the flags enable them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from kubetide.nodes.controller.writes import WrittenStatus
from kubetide.nodes.facts.capacity import CapacityChanges, kinds_read, slim_capacity
from kubetide.nodes.facts.objects import KnownKey
from kubetide.nodes.records.delta import Unwritten
from kubetide.nodes.state import State, Step
from kubetide.objects.kinds import POD_TEMPLATES, Kind
from kubetide.objects.meta import Key
from kubetide.watching import Caches, Feed, Informer


class _Source(NamedTuple):
    kind: Kind[Any]
    informer: Informer[Any]
    feed: Feed[Any]


class _Written(NamedTuple):
    """An object whose status was written, and its earlier versions, which a cache that lags behind may still have.

    With one of these a request that was just answered would be answered again, and its nodes bought twice.
    """

    item: Any
    older: tuple[str, ...]


class CapacityGatherer:
    """Reads the caches of these kinds and returns changes relative to ``known``."""

    def __init__(self, caches: Caches, known: State) -> None:
        self._caches = caches
        self._known = known
        self._sources: dict[str, _Source] | None = None
        self._reread: dict[KnownKey, str] = {}
        self._written: dict[KnownKey, _Written] = {}

    @property
    def may_have_changed(self) -> bool:
        """Whether the next ``changes`` may return anything; always true before the first call."""
        return self._sources is None or bool(self._sources)

    def note_writes(self, written: Mapping[KnownKey, WrittenStatus], errors: Mapping[KnownKey, str]) -> None:
        """Make the next tick read these objects again.

        Args:
            written: Their statuses were written: until the cache has these, or newer ones, they count, and not the cache.
            errors: Their writes failed, for these reasons: the decision that was held is none.
        """
        for key, one in written.items():
            if one.item.metadata.resource_version == one.over:  # as it was already
                continue
            before = self._written.get(key)
            older = () if before is None else (*before.older, before.item.metadata.resource_version)
            self._written[key] = _Written(one.item, (*older, one.over))
        self._reread.update(errors)

    def unread(self) -> tuple[str, ...]:
        """Return the plural names of kinds that cannot be read."""
        return tuple(name for name, source in (self._sources or {}).items() if not source.informer.has_synced)

    async def changes(
        self, step: Step, *, anew: bool
    ) -> tuple[CapacityChanges | None, tuple[KnownKey, ...], tuple[Unwritten, ...]]:
        """Return changed objects, None for nothing, deleted ones, and PodTemplates that could not be written.

        Only a tick's first step returns any.

        Args:
            step: The step of the tick.
            anew: Whether the state has forgotten all that it knew.
        """
        first = self._sources is None
        if self._sources is None:
            self._sources = {}
            for kind in kinds_read(self._known.settings):
                informer = self._caches.of(kind)
                self._sources[kind.plural] = _Source(kind, informer, informer.feed())
            for source in self._sources.values():
                # The server may not know the kind.
                await source.informer.answered()
        elif anew:
            for name, source in self._sources.items():
                source.informer.close_feed(source.feed)
                self._sources[name] = source._replace(feed=source.informer.feed())
        if step != "update" or not self._sources:
            return None, (), ()
        gone: list[KnownKey] = []
        changed = {name: self._of(name, source, gone) for name, source in self._sources.items()}
        failed = self._reread.items()
        unwritten = tuple(
            sorted(Unwritten(*key[1:], error) for key, error in failed if key[0] == POD_TEMPLATES.plural)
        )
        self._reread = {}
        found = CapacityChanges.from_kinds(changed)
        return (found if first or anew or found != CapacityChanges() else None), tuple(gone), unwritten

    def _of(self, name: str, source: _Source, gone: list[KnownKey]) -> tuple[Any, ...]:
        held = self._known.capacity.of(source.kind)
        items: dict[Key, Any] = dict(source.feed.drain())
        for plural, *place in (*self._reread, *self._written):
            if plural == name:
                key = (place[0], place[1])
                items[key] = source.informer.objects.get(key)
        items.update(self._ahead_of_cache(name, items))
        found = []
        for key, item in sorted(items.items(), key=itemgetter(0)):
            if item is None:
                gone += [(name, *key)] if key in held else []
            elif held.get(key) != (small := slim_capacity(item)):
                found.append(small)
        return tuple(found)

    def _ahead_of_cache(self, name: str, cached: Mapping[Key, Any]) -> dict[Key, Any]:
        """Return the objects of a kind of which the cache has an older version than was written; forget the others."""
        found: dict[Key, Any] = {}
        for place in [place for place in self._written if place[0] == name]:
            key, written = (place[1], place[2]), self._written[place]
            item = cached[key]
            if item is not None and item.metadata.resource_version in written.older:
                found[key] = written.item
            else:
                del self._written[place]
        return found
