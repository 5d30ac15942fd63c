"""A typed cache of one kind, kept by list and watch over the Cluster port.

What it promises: after ``synced``, ``objects`` is the state of the cluster at some version, and it
moves forward only; every change of an object reaches each feed (of what is kept of it, where that is less),
though changes that come close together may arrive as one. What it does not promise: any order between objects.

How it keeps going: a watch that ends is taken up from the last version seen; one whose version has
expired, that holds what cannot be read, or that goes back to an older version leads to a new list; a
server that fails is asked again after a pause that doubles. Behind a network list and watch are one
request where the server can, and pauses are spread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, cast

from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, Listing, RemoteCluster, WatchEvent, as_remote
from kubetide.ports.errors import ApiError, Expired, Forbidden, InternalError, NotFound
from kubetide.units.time import Duration, Instant, seconds

T = TypeVar("T")

Key = tuple[str, str]
"""(namespace, name)"""

_FIRST_PAUSE = seconds(1)
_LONGEST_PAUSE = seconds(30)


class Relist(NamedTuple):
    """What a second or later list found: how many objects there were before it, and how many of them it lost."""

    at: Instant
    before: int
    lost: int


class Feed(Generic[T]):
    """What has changed since this feed was last drained; every reader has one of its own."""

    def __init__(self) -> None:
        self._changed: dict[Key, T | None] = {}
        self._wake = asyncio.Event()

    def drain(self) -> dict[Key, T | None]:
        """Gives the newest state of each changed object, None for a deleted one, and starts anew."""
        changed, self._changed = self._changed, {}
        self._wake.clear()
        return changed

    async def wait(self) -> None:
        """Returns when something is there to be drained."""
        await self._wake.wait()

    def put(self, key: Key, value: T | None) -> None:
        """Notes a change."""
        # Taken out first, so that the order is that of the newest changes.
        self._changed.pop(key, None)
        self._changed[key] = value
        self._wake.set()


class Informer(Generic[T]):
    """Keeps ``objects`` equal to what the cluster has of one kind."""

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
    ) -> None:
        """Prepares the informer; nothing is asked before ``run``.

        Args:
            keep: What is held and handed out in the place of each object: something with its ``metadata``,
                or with ``namespace`` and ``name`` of its own. Only behind a network: a cluster of the same
                process holds the objects anyway. Nobody else has the object yet. Must not raise.
        """
        self.kind: Kind[Any] = kind
        self._cluster = cluster
        self._remote = as_remote(cluster)
        self._clock = clock
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self.keep = keep if self._remote is not None else None
        self._begun = False
        self._objects: dict[Key, T] = {}
        self._view = MappingProxyType(self._objects)
        self._feeds: list[Feed[T]] = []
        self._handlers: list[Callable[[Key, T | None, T | None], None]] = []
        self._synced = asyncio.Event()
        self._answered = asyncio.Event()
        self._version = ""
        self.last_heard: Instant | None = None
        """When the server last said anything of this kind; None before the first list."""
        self.last_relist: Relist | None = None
        self.failures = 0
        """Failed lists and watches in a row."""
        self.last_error = ""

    @property
    def objects(self) -> Mapping[Key, T]:
        """The objects by (namespace, name): a live, read-only view."""
        return self._view

    @property
    def has_synced(self) -> bool:
        """Whether a list has been taken in."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Returns once the first list has been taken in."""
        await self._synced.wait()

    async def answered(self) -> None:
        """Returns once the first list has been taken in or refused: for kinds that can be done without."""
        await self._answered.wait()

    def feed(self) -> Feed[T]:
        """Opens a feed; what is here already is its first content."""
        feed: Feed[T] = Feed()
        for key, value in self._objects.items():
            feed.put(key, value)
        self._feeds.append(feed)
        return feed

    def close_feed(self, feed: Feed[T]) -> None:
        """Ends a feed."""
        self._feeds.remove(feed)

    def on_change(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        """Calls ``handler(key, old, new)`` on every change; None stands for not there. Must not raise or block."""
        self._handlers.append(handler)

    def keep_whole(self) -> None:
        """Holds objects as they come, whatever was to be kept of them. Raises: RuntimeError once that is under way."""
        if self.keep is not None and self._begun:
            raise RuntimeError(
                f"the cache of {self.kind.resource} holds only parts of them, and was begun; ask for whole ones before"
            )
        self.keep = None

    async def run(self) -> None:
        """Lists and watches until cancelled."""
        self._begun = True
        pause = _FIRST_PAUSE
        while True:
            listing = not self._version
            try:
                if listing and self._remote is None:
                    await self._list()
                with self._heard_anything() as heard:
                    if listing and self._remote is not None:
                        await self._list_and_watch(self._remote)
                    else:
                        await self._watch()
            except Expired:
                self._version = ""
                # A server that calls even a list's version too old must not be asked in a tight loop; and where
                # one has forgotten the versions of many clients, they must not all list at the same moment.
                if listing or self._remote is not None:
                    await self._pause(_FIRST_PAUSE)
            except ApiError as error:
                self.failures += 1
                self.last_error = str(error)
                if isinstance(error, Forbidden | NotFound):
                    self._answered.set()
                if isinstance(error, InternalError):
                    # A watch from the same version would come to the same event that cannot be read.
                    self._version = ""
                await self._pause(pause)
                pause = Duration(min(2 * pause, _LONGEST_PAUSE))
                continue
            else:
                if not heard():
                    # A server that hangs up at once must not be asked in a tight loop.
                    await self._pause(_FIRST_PAUSE)
            pause = _FIRST_PAUSE

    @contextmanager
    def _heard_anything(self) -> Iterator[Callable[[], bool]]:
        before = self._version, self.last_heard
        yield lambda: (self._version, self.last_heard) != before

    async def _pause(self, pause: Duration) -> None:
        await self._clock.sleep(pause if self._remote is None else self._remote.spread(pause))

    async def _list(self) -> None:
        self._take_list(
            await self._cluster.list(
                self.kind, namespace=self._namespace, labels=self._labels, fields=self._fields
            )
        )

    async def _list_and_watch(self, remote: RemoteCluster) -> None:
        stream = remote.list_and_watch(
            self.kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            keep=self.keep,
        )
        async with aclosing(stream) as parts:
            async for part in parts:
                if isinstance(part, Listing):
                    self._take_list(cast("Listing[T]", part))
                else:
                    self._take(part)

    def _take_list(self, listing: Listing[T]) -> None:
        found: dict[Key, T] = {_key_of(item): item for item in listing.items}
        now = self._clock.now()
        gone = [key for key in self._objects if key not in found]
        if self._synced.is_set():
            self.last_relist = Relist(at=now, before=len(self._objects), lost=len(gone))
        for key in gone:
            self._put(key, None)
        for key, value in found.items():
            if self._objects.get(key) != value:
                self._put(key, value)
        self._version = listing.resource_version
        self._heard(now)
        self._synced.set()
        self._answered.set()

    async def _watch(self) -> None:
        where = {"namespace": self._namespace, "labels": self._labels, "fields": self._fields}
        if self._remote is None:
            stream = self._cluster.watch(self.kind, resource_version=self._version, **where)
        else:
            stream = self._remote.watch(self.kind, resource_version=self._version, keep=self.keep, **where)
        async with aclosing(stream) as events:
            async for batch in events:
                self._take(batch)

    def _take(self, batch: Sequence[WatchEvent[T]]) -> None:
        if not batch:
            # Taken on, nothing said yet: not a failure, and not news either.
            self._well()
            return
        for event in batch:
            if _is_older(event.resource_version, self._version):
                # Repeated, or out of order: what was missed or undone by it shows in a list only.
                raise InternalError(
                    f"a watch of {self.kind.resource} went back "
                    f"from version {self._version} to {event.resource_version}"
                )
            if event.type != "BOOKMARK":
                new = None if event.type == "DELETED" else event.object
                key = event.namespace, event.name
                # Of parts there may be nothing new; what is held already is held on, as readers hold it too.
                if self.keep is None or new is None or self._objects.get(key) != new:
                    self._put(key, new)
            self._version = event.resource_version
        self._heard(self._clock.now())

    def _heard(self, now: Instant) -> None:
        self.last_heard = now
        self._well()

    def _well(self) -> None:
        self.failures = 0
        self.last_error = ""

    def _put(self, key: Key, new: T | None) -> None:
        old = self._objects.get(key)
        if new is None:
            if old is None:
                return
            del self._objects[key]
        else:
            self._objects[key] = new
        for handler in self._handlers:
            handler(key, old, new)
        for feed in self._feeds:
            feed.put(key, new)


def _is_older(version: str, than: str) -> bool:
    """Whether one version is before another; of those that are no numbers nobody can tell.

    Source: Kubernetes v1.35, KEP-5504: resource versions of one resource can be compared.
    """
    return version != than and version.isdecimal() and than.isdecimal() and int(version) < int(than)


def _key_of(item: object) -> Key:
    if isinstance(item, dict):
        metadata = cast("dict[str, str]", item.get("metadata") or {})
        return metadata.get("namespace", ""), metadata.get("name", "")
    meta: Any = getattr(item, "metadata", item)
    return meta.namespace, meta.name
