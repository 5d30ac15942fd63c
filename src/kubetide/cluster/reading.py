"""Lists and watches over HTTP.

Source: API concepts v1.36 ("Retrieving large results sets in chunks", "Streaming lists"); client-go v1.36
(tools/cache reflector, tools/pager) for the size of pages and the length of watches.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kubetide.cluster.bounds import Cut, Frames, Lines
from kubetide.cluster.decoding import ObjectList, decode_event, decode_list
from kubetide.cluster.paths import path_of, selectors
from kubetide.cluster.stream import Stream
from kubetide.cluster.transport import JSON, Asked, Transport
from kubetide.objects.kinds import Kind
from kubetide.objects.protobuf import MAGIC, MEDIA_TYPE, PROTOBUF_OR_JSON
from kubetide.objects.sharing import shared
from kubetide.ports.cluster import Listing, UnreadableObject, WatchEvent
from kubetide.ports.errors import BadRequest, Expired, InternalError, Invalid, MethodNotAllowed, Unavailable
from kubetide.units.seeds import uniform
from kubetide.units.time import Duration, seconds

if TYPE_CHECKING:
    from kubetide.cluster.protobuf import ProtobufCodec  # its library need not be there

T = TypeVar("T")

PAGE = 500
"""Objects of one part of a list."""

_SHORTEST_WATCH_S, _LONGEST_WATCH_S = 300.0, 600.0

_LONG = 1 << 18
"""From so many bytes on, a list is one that is long, and is taken in larger pieces."""

_AT_ONCE = 1 << 16

_INITIAL_PATIENCE = seconds(10)
"""After how long without a word a server is taken for one that does not know streaming lists."""

_STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


class _NotStreamedError(Exception):
    """The server sends no streaming list of this kind."""


class _Form(NamedTuple):
    """How a stream is read: cut into events, each event decoded, and its object reduced."""

    cut: Cut
    event: Callable[[bytes, Kind[Any]], tuple[WatchEvent[Any], bool]]
    keep: Callable[[Any], Any] | None

    def trimmed(self, one: bytes, kind: Kind[Any]) -> WatchEvent[Any]:
        """Read an event with its object reduced."""
        event = self.event(one, kind)[0]
        if self.keep is None or event.object is None or isinstance(event.object, UnreadableObject):
            return event
        return event._replace(object=self.keep(event.object))


class Reader:
    """Reads collections over a transport.

    Args:
        transport: Sends the requests.
        stall: After how long without a word a watch is given up.
        most: Objects of one list.
        seed: Of the lengths of watches and the jitter of pauses.
        codec: Reads what the server sends in protobuf; with it the kinds that it knows are asked for so.
            A server may answer in JSON all the same.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        stall: Duration,
        most: int,
        seed: int,
        codec: ProtobufCodec | None = None,
    ) -> None:
        self._transport = transport
        self._stall = stall
        self._most = most
        self._seed = seed
        self._codec = codec
        self._draws = 0
        self._in_pages: set[str] = set()

    async def list(
        self,
        kind: Kind[T],
        *,
        namespace: str,
        labels: str,
        fields: str,
        keep: Callable[[T], Any] | None = None,
    ) -> Listing[Any]:
        """Read a collection in pages; all are of one version."""
        path, query = path_of(kind, namespace), selectors(labels, fields)
        try:
            return await self._pages(kind, path, {**query, "limit": str(PAGE)}, keep)
        except Expired:
            # Not the token that the error brings: it goes on with newer objects, so that a watch from the
            # version of the list would miss what happened to those read before. As upstream: all in one.
            return await self._pages(kind, path, query, keep)

    async def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str,
        labels: str,
        fields: str,
        keep: Callable[[T], Any] | None = None,
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        """Stream changes until the server ends the watch, or has been silent for too long."""
        query = {**self._watch_query(), **selectors(labels, fields)}
        if resource_version:
            query["resourceVersion"] = resource_version
        async with (
            self._transport.stream(path_of(kind, namespace), query, self._accepted(kind)) as stream,
            aclosing(self._batches(kind, stream, self._form_of(stream, kind, keep))) as batches,
        ):
            yield ()  # the server has taken the watch on, though it may say nothing for long
            async for batch in batches:
                yield batch

    async def list_and_watch(
        self,
        kind: Kind[T],
        *,
        namespace: str,
        labels: str,
        fields: str,
        keep: Callable[[T], Any] | None = None,
    ) -> AsyncGenerator[Listing[Any] | Sequence[WatchEvent[Any]], None]:
        """Stream the list, then its changes, in one request where the server can, else by ``list`` and ``watch``."""
        where = {"namespace": namespace, "labels": labels, "fields": fields}
        if kind.resource not in self._in_pages:
            try:
                async with aclosing(self._streamed(kind, keep=keep, **where)) as parts:
                    async for part in parts:
                        yield part
                        del part  # a watch goes on for long, and need not hold what the list was
            except _NotStreamedError:
                pass
            else:
                return
        listing = await self.list(kind, keep=keep, **where)
        # Noted once the list has shown that it was not the question itself that was wrong.
        self._in_pages.add(kind.resource)
        yield listing
        version = listing.resource_version
        del listing
        async with aclosing(self.watch(kind, resource_version=version, keep=keep, **where)) as batches:
            async for batch in batches:
                yield batch

    def spread(self, pause: Duration) -> Duration:
        """Return a pause of once to twice that length."""
        return Duration(round(pause * self._draw(1.0, 2.0)))

    async def _pages(
        self, kind: Kind[T], path: str, query: dict[str, str], keep: Callable[[T], Any] | None
    ) -> Listing[Any]:
        items: list[Any] = []
        unread: list[UnreadableObject] = []
        version, token = "", ""
        while True:
            whole = {**query, "continue": token} if token else query
            body = await self._transport.send(Asked("GET", path, whole, accept=self._accepted(kind)))
            part, passed_over = self._read_list(kind, body, keep)
            del body  # the next one need not be held beside it
            items += part.items or ()
            unread += passed_over
            self._check_number(kind, len(items))
            version, token = version or part.metadata.resource_version, part.metadata.continue_
            if not token:
                return Listing(tuple(items), version, tuple(unread))

    async def _streamed(
        self,
        kind: Kind[T],
        *,
        namespace: str,
        labels: str,
        fields: str,
        keep: Callable[[T], Any] | None,
    ) -> AsyncGenerator[Listing[Any] | Sequence[WatchEvent[Any]], None]:
        query = {**self._watch_query(), **_STREAMED, **selectors(labels, fields)}
        opening = self._transport.stream(path_of(kind, namespace), query, self._accepted(kind))
        try:
            stream = await opening.__aenter__()
        except (BadRequest, Invalid, MethodNotAllowed) as error:
            raise _NotStreamedError from error
        try:
            form = self._form_of(stream, kind, keep)
            try:
                listing, first = await self._initial(kind, stream, form)
            finally:
                stream.gather(1)
            yield listing
            del listing
            if first:
                yield first
            async with aclosing(self._batches(kind, stream, form)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            await opening.__aexit__(None, None, None)

    async def _initial(
        self, kind: Kind[T], stream: Stream, form: _Form
    ) -> tuple[Listing[Any], Sequence[WatchEvent[Any]]]:
        """Read the objects that a watch begins with; return them, and the events behind them."""
        items: list[tuple[str, str, Any]] = []
        unread: list[UnreadableObject] = []
        taken, is_long = 0, False
        while True:
            piece = await stream.read(_INITIAL_PATIENCE)
            if piece is None:
                raise _NotStreamedError
            if not piece:
                raise Unavailable(f"the list of {kind.resource} broke off after {len(items)} objects")
            taken += len(piece)
            if taken > _LONG and not is_long:
                is_long = True
                stream.gather(_AT_ONCE)
            pieces = form.cut.take(piece)
            for number, one in enumerate(pieces):
                event, ends = form.event(one, kind)
                if ends:
                    later = [form.trimmed(other, kind) for other in pieces[number + 1 :]]
                    # A stream promises no order; a list does.
                    items.sort(key=itemgetter(0, 1))
                    return Listing(
                        tuple(item[2] for item in items), event.resource_version, tuple(unread)
                    ), later
                if event.type != "ADDED" or event.object is None:
                    raise _NotStreamedError  # these are changes: the server did not understand the question
                if isinstance(event.object, UnreadableObject):
                    unread.append(event.object)
                    continue
                trimmed = event.object if form.keep is None else form.keep(event.object)
                items.append((event.namespace, event.name, trimmed))
            self._check_number(kind, len(items))

    def _check_number(self, kind: Kind[T], number: int) -> None:
        """Raise: InternalError for a list that does not end."""
        if number > self._most:
            raise InternalError(
                f"the list of {kind.resource} has more than {self._most} objects (max-list-objects) and is not read "
                "on; where there are so many, allow more"
            )

    async def _batches(
        self, kind: Kind[T], stream: Stream, form: _Form
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        while piece := await stream.read(self._stall):
            if pieces := form.cut.take(piece):
                yield [form.trimmed(one, kind) for one in pieces]

    def _accepted(self, kind: Kind[Any]) -> str:
        return PROTOBUF_OR_JSON if self._codec is not None and self._codec.knows(kind) else JSON

    def _read_list(
        self, kind: Kind[T], body: bytes, keep: Callable[[T], Any] | None
    ) -> tuple[ObjectList[Any], Sequence[UnreadableObject]]:
        unread: Sequence[UnreadableObject] = ()
        if self._codec is not None and body.startswith(MAGIC):
            found = self._codec.decode_list(kind, body)
        else:
            found, unread = decode_list(kind, body)
            keep = keep or shared
        if keep is not None:
            found = ObjectList(found.metadata, tuple(map(keep, found.items or ())))
        return found, unread

    def _form_of(self, stream: Stream, kind: Kind[Any], keep: Callable[[Any], Any] | None) -> _Form:
        if self._codec is not None and stream.media_type == MEDIA_TYPE:
            # What many objects have in common it reads once.
            return _Form(Frames(self._codec.cut), self._codec.decode_event, keep)
        return _Form(Lines(kind.resource), decode_event, keep or shared)

    def _watch_query(self) -> dict[str, Any]:
        # Not all watches of all clients end together.
        length = self._draw(_SHORTEST_WATCH_S, _LONGEST_WATCH_S)
        return {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(int(length))}

    def _draw(self, low: float, high: float) -> float:
        self._draws += 1
        return uniform(self._seed, low, high, "reader", self._draws)
