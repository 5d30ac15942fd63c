"""The Cluster port over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, cast
from urllib.parse import quote

import aiohttp
import msgspec

from kubetide.cluster.config import Connection
from kubetide.cluster.discovery import DISCOVERY_TYPES, served_kinds
from kubetide.cluster.refusals import error_of_body, error_of_status
from kubetide.objects.base import Json, json_name
from kubetide.objects.kinds import Kind
from kubetide.objects.workload import Scale
from kubetide.ports.cluster import EventType, Listing, PatchType, Propagation, WatchEvent
from kubetide.ports.errors import InternalError, Unavailable

T = TypeVar("T")

_MEDIA_TYPES: dict[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}

_REQUEST_TIMEOUT_S = 60.0
_ENDLESS = aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_TIMEOUT_S)

encode = msgspec.json.Encoder().encode


class _ListMeta(msgspec.Struct, rename=json_name):
    resource_version: str = ""


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: tuple[T, ...] | None = None


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _EventMeta(msgspec.Struct, rename=json_name):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Reached(msgspec.Struct):
    """What every object of an event says of itself."""

    metadata: _EventMeta


_read_event = msgspec.json.Decoder(_RawEvent).decode
_read_reached = msgspec.json.Decoder(_Reached).decode


class HttpCluster:
    """A cluster behind an API server; use it as a context manager, or call ``close``.

    Args:
        connection: Where it is, and who asks.

    Must be made while the event loop runs that will use it.
    """

    def __init__(self, connection: Connection) -> None:
        self._url = connection.url
        headers = {"User-Agent": "kubetide"}
        if connection.token:
            headers["Authorization"] = f"Bearer {connection.token}"
        tls = connection.tls()
        # Every watch holds a connection, so there is no limit to them.
        connector = aiohttp.TCPConnector(limit=0, ssl=True if tls is None else tls)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes every connection."""
        await self._session.close()

    async def kinds(self) -> Sequence[Kind[Any]]:
        return await served_kinds(lambda path: self._bytes("GET", path, accept=DISCOVERY_TYPES))

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        return await self._send("GET", _path(kind, namespace, name), kind.model)

    async def list(
        self, kind: Kind[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        body = await self._bytes("GET", _path(kind, namespace), query=_selectors(labels, fields))
        model: Any = kind.model
        found = cast("_List[T]", _decode(_decoder(_List[model]), body))
        items = found.items or ()
        _name_types(kind, items)
        return Listing(items, found.metadata.resource_version)

    async def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[Sequence[WatchEvent[T]], None]:
        query = {"watch": "1", "allowWatchBookmarks": "1", **_selectors(labels, fields)}
        if resource_version:
            query["resourceVersion"] = resource_version
        decoder = _decoder(kind.model)
        async with self._answer("GET", _path(kind, namespace), query=query, endless=True) as answer:
            rest = b""
            try:
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    events = [cast("WatchEvent[T]", _event(line, decoder)) for line in lines if line]
                    if events:
                        yield events
            except aiohttp.ClientError:
                return  # the stream may end at any time

    async def create(self, kind: Kind[T], body: Json, *, namespace: str = "") -> T:
        if kind.namespaced:
            namespace = namespace or (body.get("metadata") or {}).get("namespace") or ""
        path = _path(kind, namespace)
        typed = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self._send("POST", path, kind.model, body=typed)

    async def replace(
        self, kind: Kind[T], body: Json, *, namespace: str = "", subresource: Literal["", "status"] = ""
    ) -> T:
        meta = body.get("metadata") or {}
        path = _path(kind, namespace or meta.get("namespace") or "", meta.get("name") or "", subresource)
        typed = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self._send("PUT", path, kind.model, body=typed)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str = "",
        patch_type: PatchType = "merge",
        subresource: Literal["", "status"] = "",
    ) -> T:
        path = _path(kind, namespace, name, subresource)
        return await self._send("PATCH", path, kind.model, body=patch, media_type=_MEDIA_TYPES[patch_type])

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
        options = _delete_options(uid, resource_version, grace_period_s)
        options["propagationPolicy"] = propagation
        await self._bytes("DELETE", _path(kind, namespace, name), body=options)

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str) -> Scale:
        return await self._send("GET", _path(kind, namespace, name, "scale"), Scale)

    async def replace_scale(
        self, kind: Kind[Any], name: str, replicas: int, *, namespace: str, resource_version: str = ""
    ) -> Scale:
        metadata = {"name": name, "namespace": namespace}
        if resource_version:
            metadata["resourceVersion"] = resource_version
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": metadata,
            "spec": {"replicas": replicas},
        }
        return await self._send("PUT", _path(kind, namespace, name, "scale"), Scale, body=body)

    async def bind(self, *, namespace: str, pod: str, node: str, uid: str = "") -> None:
        metadata = {"name": pod, "namespace": namespace} | ({"uid": uid} if uid else {})
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._bytes("POST", _pod_path(namespace, pod, "binding"), body=body)

    async def evict(
        self, *, namespace: str, pod: str, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        options = _delete_options(uid, "", grace_period_s)
        if options:
            body["deleteOptions"] = options
        await self._bytes("POST", _pod_path(namespace, pod, "eviction"), body=body)

    async def _send(
        self,
        method: str,
        path: str,
        model: type[T],
        *,
        body: Json | Sequence[Json] | None = None,
        media_type: str = "application/json",
    ) -> T:
        answer = await self._bytes(method, path, body=body, media_type=media_type)
        return cast("T", _decode(_decoder(model), answer))

    async def _bytes(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | Sequence[Json] | None = None,
        media_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        async with self._answer(
            method, path, query=query, body=body, media_type=media_type, accept=accept
        ) as answer:
            try:
                return await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                raise Unavailable(f"{method} {self._url}{path}: the answer broke off: {error}") from error

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | Sequence[Json] | None = None,
        media_type: str = "application/json",
        accept: str = "application/json",
        endless: bool = False,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """Gives an answer of success. Raises the ApiError of any other, Unavailable for none."""
        more: dict[str, Any] = {"timeout": _ENDLESS} if endless else {}
        headers = {"Accept": accept}
        if body is not None:
            more["data"] = encode(body)
            headers["Content-Type"] = media_type
        try:
            answer = await self._session.request(
                method, self._url + path, params=query, headers=headers, **more
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{method} {self._url}{path}: {str(error) or 'no answer in time'}") from error
        async with answer:
            if answer.status >= 300:
                raise error_of_body(answer.status, await answer.read())
            yield answer


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(model: Any) -> msgspec.json.Decoder[Any]:
    """Gives the decoder of a type; making one costs more than using it."""
    found = _decoders.get(model)
    if found is None:
        found = _decoders[model] = msgspec.json.Decoder(model)
    return found


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise InternalError(f"the server's answer cannot be read: {error}") from error


def _name_types(kind: Kind[Any], items: Sequence[Any]) -> None:
    """Writes into the items of a list what type they are of, which servers leave out; nobody shares them yet."""
    if kind.model is dict:
        for item in items:
            item.setdefault("apiVersion", kind.api_version)
            item.setdefault("kind", kind.kind)
        return
    for item in items:
        msgspec.structs.force_setattr(item, "api_version", kind.api_version)
        msgspec.structs.force_setattr(item, "kind", kind.kind)


def _event(line: bytes, decoder: msgspec.json.Decoder[Any]) -> WatchEvent[Any]:
    """Reads an event. Raises the ApiError that an ERROR event carries."""
    try:
        event = _read_event(line)
        if event.type == "ERROR":
            status: Any = msgspec.json.decode(event.object)
            raise error_of_status(status)
        meta = _read_reached(event.object).metadata
        if event.type == "BOOKMARK":
            return WatchEvent("BOOKMARK", None, meta.resource_version, "", "")
        found = decoder.decode(event.object)
    except msgspec.DecodeError as error:
        raise InternalError(f"an event of a watch cannot be read: {error}") from error
    return WatchEvent(cast("EventType", event.type), found, meta.resource_version, meta.namespace, meta.name)


def _path(kind: Kind[Any], namespace: str = "", name: str = "", subresource: str = "") -> str:
    parts = ["apis", kind.group] if kind.group else ["api"]
    parts.append(kind.version)
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    parts.append(kind.plural)
    parts += [part for part in (name, subresource) if part]
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _pod_path(namespace: str, pod: str, subresource: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/{subresource}"


def _selectors(labels: str, fields: str) -> dict[str, str]:
    said = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in said.items() if text}


def _delete_options(uid: str, resource_version: str, grace_period_s: int | None) -> Json:
    options: Json = {}
    required = {"uid": uid, "resourceVersion": resource_version}
    required = {name: value for name, value in required.items() if value}
    if required:
        options["preconditions"] = required
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    return options
