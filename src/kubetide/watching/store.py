"""The stored objects of one kind, and the readers of their changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from kubetide.objects.meta import Key

T = TypeVar("T")

Keep = Callable[[Any], Any]
"""What is made of an object to be held in its place."""


class Feed(Generic[T]):
    """The changes since this feed was last drained; every reader has its own."""

    def __init__(self) -> None:
        self.changed: dict[Key, T | None] = {}
        """What is there to be drained."""
        self._wake = asyncio.Event()

    def drain(self) -> dict[Key, T | None]:
        """Return the newest state of each changed object, None for a deleted one, and start again."""
        if not self.changed:
            return {}
        changed, self.changed = self.changed, {}
        self._wake.clear()
        return changed

    async def wait(self) -> None:
        """Return once there is something to drain."""
        await self._wake.wait()

    def put(self, key: Key, value: T | None) -> None:
        """Note a change."""
        # Taken out first, so that the order is that of the newest changes.
        self.changed.pop(key, None)
        self.changed[key] = value
        self._wake.set()


class Store(Generic[T]):
    """The objects by (namespace, name), reduced by ``keep``.

    Attributes:
        keep: None where objects are held as they come.
        view: ``objects``, read-only.
    """

    def __init__(self, keep: Keep | None) -> None:
        self.keep = keep
        self.objects: dict[Key, T] = {}
        self.view = MappingProxyType(self.objects)
        self._feeds: list[Feed[T]] = []
        self._handlers: list[Callable[[Key, T | None, T | None], None]] = []

    def feed(self) -> Feed[T]:
        """Open a feed; the present objects are its first content."""
        feed: Feed[T] = Feed()
        for key, value in self.objects.items():
            feed.put(key, value)
        self._feeds.append(feed)
        return feed

    def close_feed(self, feed: Feed[T]) -> None:
        """End a feed."""
        self._feeds.remove(feed)

    def on_change(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        """Call ``handler(key, old, new)`` on every change; None means absent."""
        self._handlers.append(handler)

    def put(self, key: Key, new: T | None) -> None:
        """Store an object, or remove it for None, and announce the change."""
        old = self.objects.get(key)
        if new is None:
            if old is None:
                return
            del self.objects[key]
        elif self.keep is not None and old == new:
            # Of parts there may be nothing new; what is held already is held on, as readers hold it too.
            return
        else:
            self.objects[key] = new
        for handler in self._handlers:
            handler(key, old, new)
        for feed in self._feeds:
            feed.put(key, new)
