"""List and watch of one kind: keeps the stores of all readers equal to the cluster.

How it keeps going: a watch that ends is taken up from the last version seen; one whose version has
expired, that holds what cannot be read, or that goes back to an older version leads to a new list; a
server that fails is asked again after a pause that doubles. Behind a network list and watch are one
request where the server can, and pauses are spread.

Behind a network an object is dropped as soon as each store has what it keeps of it. A cluster of the same process
holds the objects anyway, so there all stores hold them as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, NamedTuple, cast

from kubetide.objects.kinds import Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, Listing, RemoteCluster, UnreadableObject, WatchEvent, as_remote
from kubetide.ports.errors import ApiError, Expired, Forbidden, InternalError, NotFound
from kubetide.units.time import Duration, Instant, seconds
from kubetide.watching.store import Keep, Store

_FIRST_PAUSE = seconds(1)
_LONGEST_PAUSE = seconds(30)


class Relist(NamedTuple):
    """The result of a second or later list: the number of objects before it, and how many of them it lost."""

    at: Instant
    before: int
    lost: int


class Reflector:
    """Keeps stores equal to the cluster's objects of one kind; all stores have the same keys.

    Attributes:
        last_received: When the server last said anything of this kind; None before the first list. In the same process,
            where there are no bookmarks, also when the watch failed.
        last_relist: What the last list found, None before the second one.
        failures: Failed lists and watches in a row.
        last_error: Of the last of them; empty when there are none.
        refused: Whether the last of them was refused: the kind may not be read, or is not served.
        unread: The objects that cannot be read. What stores have of them is their last state that could, if any.
        synced: Set once the first list has been taken in.
        answered: Set once the first list has been taken in or refused.
    """

    def __init__(
        self, cluster: Cluster, kind: Kind[Any], clock: Clock, *, namespace: str, labels: str, fields: str
    ) -> None:
        self.kind = kind
        self._cluster = cluster
        self._remote = as_remote(cluster)
        self._clock = clock
        self._where = {"namespace": namespace, "labels": labels, "fields": fields}
        self._stores: list[Store[Any]] = []
        self._begun = False
        self._version = ""
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        self.last_received: Instant | None = None
        self.last_relist: Relist | None = None
        self.failures = 0
        self.last_error = ""
        self.refused = False
        self.unread: dict[Key, UnreadableObject] = {}

    def store(self, keep: Keep | None) -> Store[Any]:
        """Return the store of objects reduced by ``keep``, or of whole objects if another reader needs them whole.

        Raises: RuntimeError where nobody has asked for that before, and the first list is under way.
        """
        if self._remote is None:
            keep = None
        elif keep is None:
            self._keep_whole()
        found = next((one for one in self._stores if one.keep is None or one.keep == keep), None)
        if found is None:
            self._check_not_begun()
            found = Store(keep)
            self._stores.append(found)
        return found

    def _keep_whole(self) -> None:
        """Have all stores hold objects as they come. Raises: RuntimeError as ``store``."""
        for store in self._stores:
            if store.keep is not None:
                self._check_not_begun()
                store.keep = None

    def _check_not_begun(self) -> None:
        if self._begun:
            raise RuntimeError(
                f"the cache of {self.kind.resource} holds only parts of them, and was begun; "
                "ask for whole ones, or other parts, before"
            )

    async def run(self) -> None:
        """List and watch until cancelled."""
        self._begun = True
        pause = _FIRST_PAUSE
        while True:
            listing = not self._version
            try:
                if listing and self._remote is None:
                    await self._list()
                with self._received_anything() as received:
                    if listing and self._remote is not None:
                        await self._list_and_watch(self._remote)
                    else:
                        await self._watch()
            except Expired:
                self._note_heard_so_far()
                self._version = ""
                # A server that calls even a list's version too old must not be asked in a tight loop; and where
                # one has forgotten the versions of many clients, they must not all list at the same moment.
                if listing or self._remote is not None:
                    await self._pause(_FIRST_PAUSE)
            except ApiError as error:
                self._note_heard_so_far()
                self.failures += 1
                self.last_error = str(error)
                self.refused = isinstance(error, Forbidden | NotFound)
                if self.refused:
                    self.answered.set()
                if isinstance(error, InternalError):
                    # A watch from the same version would come to the same event that cannot be read.
                    self._version = ""
                await self._pause(pause)
                pause = Duration(min(2 * pause, _LONGEST_PAUSE))
                continue
            else:
                if not received():
                    # A server that hangs up at once must not be asked in a tight loop.
                    await self._pause(_FIRST_PAUSE)
            pause = _FIRST_PAUSE

    @contextmanager
    def _received_anything(self) -> Iterator[Callable[[], bool]]:
        before = self._version, self.last_received
        yield lambda: (self._version, self.last_received) != before

    async def _pause(self, pause: Duration) -> None:
        await self._clock.sleep(pause if self._remote is None else self._remote.spread(pause))

    # ── reading ──

    async def _list(self) -> None:
        self._take_list(await self._cluster.list(self.kind, **self._where))

    async def _list_and_watch(self, remote: RemoteCluster) -> None:
        stream = remote.list_and_watch(self.kind, keep=self._keep(), **self._where)
        async with aclosing(stream) as parts:
            async for part in parts:
                if isinstance(part, Listing):
                    self._take_list(cast("Listing[Any]", part))
                else:
                    self._take(part)
                del part  # what is held of a list changes, and the list need not be held beside it

    async def _watch(self) -> None:
        if self._remote is None:
            stream = self._cluster.watch(self.kind, resource_version=self._version, **self._where)
        else:
            stream = self._remote.watch(
                self.kind, resource_version=self._version, keep=self._keep(), **self._where
            )
        async with aclosing(stream) as events:
            async for batch in events:
                self._take(batch)

    def _keep(self) -> Keep | None:
        """Return what is made of each object as soon as it is read; None for the object itself."""
        if not self._in_parts():
            return self._stores[0].keep
        keeps = [store.keep for store in self._stores if store.keep is not None]
        return lambda item: tuple([keep(item) for keep in keeps])

    def _in_parts(self) -> bool:
        """Return whether several stores hold each something else of an object: it is read as a tuple, store by store."""
        return len(self._stores) > 1 and self._stores[0].keep is not None

    # ── taking in ──

    def _take_list(self, listing: Listing[Any]) -> None:
        in_parts = self._in_parts()
        found: dict[Key, Any] = {_key_of(item[0] if in_parts else item): item for item in listing.items}
        now, known = self._clock.now(), self._stores[0].objects
        self.unread = {(one.metadata.namespace, one.metadata.name): one for one in listing.unread}
        gone = [key for key in known if key not in found and key not in self.unread]
        if self.synced.is_set():
            self.last_relist = Relist(at=now, before=len(known), lost=len(gone))
        for at, store in enumerate(self._stores):
            for key in gone:
                store.put(key, None)
            for key, item in found.items():
                value = item[at] if in_parts else item
                if store.objects.get(key) != value:
                    store.put(key, value)
        self._version = listing.resource_version
        self._heard(now)
        self.synced.set()
        self.answered.set()

    def _take(self, batch: Sequence[WatchEvent[Any]]) -> None:
        if not batch:
            # The server accepted the watch and sent nothing yet: neither a failure nor a success.
            self._well()
            return
        stores, in_parts = self._stores, self._in_parts()
        for event in batch:
            if _is_older(event.resource_version, self._version):
                # Repeated, or out of order: what was missed or undone by it shows in a list only.
                raise InternalError(
                    f"a watch of {self.kind.resource} went back "
                    f"from version {self._version} to {event.resource_version}"
                )
            if event.type != "BOOKMARK":
                key = event.namespace, event.name
                new = None if event.type == "DELETED" else event.object
                self.unread.pop(key, None)
                if isinstance(new, UnreadableObject):
                    self.unread[key] = new
                    self._version = event.resource_version
                    continue
                for at, store in enumerate(stores):
                    store.put(key, new[at] if in_parts and new is not None else new)
            self._version = event.resource_version
        self._heard(self._clock.now())

    def _heard(self, now: Instant) -> None:
        self.last_received = now
        self._well()

    def _note_heard_so_far(self) -> None:
        # A cluster of the same process sends no bookmarks: up to the failure of its watch nothing was missed.
        if self._remote is None and not self.failures and self.last_received is not None:
            self.last_received = self._clock.now()

    def _well(self) -> None:
        self.failures = 0
        self.last_error = ""
        self.refused = False


def _is_older(version: str, than: str) -> bool:
    """Return whether one version is before another; False for those that are no numbers.

    Source: Kubernetes v1.35, KEP-5504: resource versions of one resource can be compared.
    """
    return version != than and version.isdecimal() and than.isdecimal() and int(version) < int(than)


def _key_of(item: object) -> Key:
    if isinstance(item, dict):
        metadata = cast("dict[str, str]", item.get("metadata") or {})
        return metadata.get("namespace", ""), metadata.get("name", "")
    meta: Any = getattr(item, "metadata", item)
    return meta.namespace, meta.name
