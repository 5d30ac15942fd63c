"""The Cluster port over a store in the same process: nothing is encoded, structs are shared.

Its watches send no bookmarks: while one is open, its reader misses nothing.
"""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Generator, Sequence
from copy import copy
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from kubetide.embedded.apiserver.admission import Caller, UserInfo
from kubetide.embedded.apiserver.store.front import Front
from kubetide.embedded.apiserver.store.request import NO_OPTIONS, Options, Request, Response, Verb
from kubetide.embedded.apiserver.store.rest import Rest
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.scale import SCALE
from kubetide.embedded.apiserver.store.store import Store
from kubetide.embedded.apiserver.store.watcher import Entry
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS, Kind, as_registered, may_be_unreadable, version_priority
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.workload import Scale
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import (
    Listing,
    PatchType,
    Propagation,
    UnreadableObject,
    WatchEvent,
    field_problem,
)

T = TypeVar("T")

# After so many requests the other tasks get a turn, as no request here waits for anything: often
# enough that no watch falls behind, seldom enough that watches are handed batches.
_REQUESTS_A_TURN = 16

_USER = UserInfo("system:kube-controller-manager", ("system:authenticated",))


class Faults(Protocol):
    """What may go wrong between a client and the server."""

    async def before(self, request: Request) -> None:
        """Called with each request before it is handled: may wait, may raise an ApiError."""
        ...


class EmbeddedCluster:
    """A client of a cluster in the same process.

    Args:
        store: What holds the objects; one cluster to a store.
        clock: What time creations, deletions and conditions are stamped with.
        seed: What uids and generated names are drawn from.
        faults: What may go wrong; None for nothing.
        webhooks: Calls admission webhooks; without it such a call fails, and its policy decides.
        user: The user in webhooks' reviews.

    Attributes:
        rest: The REST semantics, for an HTTP face over the same cluster.
        front: The way in to them through admission webhooks.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        seed: int = 0,
        *,
        faults: Faults | None = None,
        webhooks: Caller | None = None,
        user: UserInfo = _USER,
    ) -> None:
        self.rest = Rest(store, clock, seed)
        self.front = Front(self.rest, webhooks, seed)
        self._user = user
        self.faults = faults
        self._store = store
        self._requests = 0
        self._gives_bodies = False

    def client(
        self, *, faults: Faults | None = None, gives_bodies: bool = False, user: UserInfo | None = None
    ) -> EmbeddedCluster:
        """Return another client of the same cluster.

        Args:
            faults: What may go wrong for it.
            gives_bodies: Its users never change a body that they have sent, so none is copied.
            user: The user in webhooks' reviews; None for this client's own.
        """
        other = copy(self)
        other._user = user or self._user  # noqa: SLF001  its own copy
        other.faults = faults
        other._gives_bodies = gives_bodies  # noqa: SLF001  its own copy
        return other

    async def kinds(self) -> Sequence[Kind[Any]]:
        served = self.rest.kinds
        groups = list(dict.fromkeys(kind.group for kind in served))
        in_order = sorted(served, key=lambda kind: (groups.index(kind.group), version_priority(kind.version)))
        return [as_registered(kind.untyped) for kind in in_order]

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        response = await self._send("get", kind, namespace, name)
        return _object(response, kind)

    async def list(
        self, kind: Kind[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        options = Options(labels=labels, fields=fields) if labels or fields else NO_OPTIONS
        response = await self._send("list", kind, namespace, options=options)
        version, revisions = str(response.version), response.listing or ()
        if not may_be_unreadable(kind):
            return Listing([revision.read_as(kind.model) for revision in revisions], version)
        items, unread = _divided(revisions, kind)
        return Listing(items, version, unread)

    async def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[Sequence[WatchEvent[T]], None]:
        options = Options(labels=labels, fields=fields, resource_version=resource_version)
        response = await self._send("watch", kind, namespace, options=options)
        watcher = response.watcher
        assert watcher is not None
        try:
            yield ()  # the watch is open, though it may say nothing for long
            while True:
                await watcher.wait()
                entries = watcher.take()
                if entries:
                    yield [_event(entry, kind) for entry in entries]
                elif watcher.error is not None:
                    raise watcher.error
                elif watcher.closed:
                    return
        finally:
            watcher.close()

    async def create(self, kind: Kind[T], body: Json, *, namespace: str = "", dry_run: bool = False) -> T:
        options = Options(dry_run=True) if dry_run else NO_OPTIONS
        response = await self._send("create", kind, namespace, options=options, body=body)
        return _object(response, kind)

    async def replace(
        self, kind: Kind[T], body: Json, *, namespace: str = "", subresource: Literal["", "status"] = ""
    ) -> T:
        meta = body.get("metadata") or {}
        namespace = namespace or meta.get("namespace") or ""
        response = await self._send(
            "replace", kind, namespace, meta.get("name") or "", subresource, body=body
        )
        return _object(response, kind)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str = "",
        patch_type: PatchType = "merge",
        subresource: Literal["", "status", "resize"] = "",
    ) -> T:
        options = NO_OPTIONS if patch_type == "merge" else Options(patch_type=patch_type)
        response = await self._send("patch", kind, namespace, name, subresource, options, patch)
        return _object(response, kind)

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        options = Options(
            uid=uid,
            resource_version=resource_version,
            grace_period_s=grace_period_s,
            propagation=propagation,
        )
        await self._send("delete", kind, namespace, name, options=options)

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str) -> Scale:
        response = await self._send("get", kind, namespace, name, "scale")
        return _object(response, SCALE)

    async def replace_scale(
        self, kind: Kind[Any], name: str, replicas: int, *, namespace: str, resource_version: str = ""
    ) -> Scale:
        body: Json = {"metadata": {"name": name, "namespace": namespace}, "spec": {"replicas": replicas}}
        if resource_version:
            body["metadata"]["resourceVersion"] = resource_version
        response = await self._send("replace", kind, namespace, name, "scale", body=body)
        return _object(response, SCALE)

    async def bind(self, *, namespace: str, pod: str, node: str, uid: str = "") -> None:
        body = {"target": {"kind": "Node", "name": node}}
        await self._send("create", PODS, namespace, pod, "binding", Options(uid=uid), body)

    async def evict(
        self, *, namespace: str, pod: str, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        options = Options(uid=uid, grace_period_s=grace_period_s)
        await self._send("create", PODS, namespace, pod, "eviction", options, {})

    def expire_watches(self) -> None:
        """End every open watch of the store as expired and forget the history: all readers must list again."""
        self._store.close_watches(expire=True)

    def drop_watches(self) -> None:
        """End every open watch of the store, as a broken connection does: readers may go on from where they were."""
        self._store.close_watches(expire=False)

    async def _send(
        self,
        verb: Verb,
        kind: Kind[Any],
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        options: Options = NO_OPTIONS,
        body: Any = None,
    ) -> Response:
        request = Request(verb, kind, namespace, name, subresource, options, body, self._gives_bodies)
        if self.faults is not None:
            await self.faults.before(request)
        self._requests += 1
        if self._requests % _REQUESTS_A_TURN == 0:
            await _turn()
        if self.front.idle:
            return self.rest.handle(request)
        return await self.front.handle(request, self._user)


@types.coroutine
def _turn() -> Generator[None, None, None]:
    """Let every other task that is ready run once."""
    yield


def _object(response: Response, kind: Kind[T]) -> T:
    assert response.object is not None
    return response.object.read_as(kind.model)


def _event(entry: Entry, kind: Kind[T]) -> WatchEvent[T]:
    revision = entry.revision
    assert revision is not None, "nobody asks for bookmarks here"
    namespace, name = revision.key
    found: T | UnreadableObject
    try:
        found = revision.read_as(kind.model)
    except msgspec.ValidationError as error:
        if not may_be_unreadable(kind):
            raise
        found = _unread(revision, error)
    return WatchEvent(entry.type, found, str(entry.version), namespace, name)


def _divided(revisions: Sequence[Revision], kind: Kind[T]) -> tuple[Sequence[T], Sequence[UnreadableObject]]:
    """Return the objects that can be read, and the others."""
    items: list[T] = []
    unread: list[UnreadableObject] = []
    for revision in revisions:
        try:
            items.append(revision.read_as(kind.model))
        except msgspec.ValidationError as error:
            unread.append(_unread(revision, error))
    return items, unread


def _unread(revision: Revision, error: msgspec.ValidationError) -> UnreadableObject:
    return UnreadableObject(msgspec.convert(revision.metadata, ObjectMeta), field_problem(error))
