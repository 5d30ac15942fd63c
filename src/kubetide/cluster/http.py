"""The Cluster port over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import msgspec

from kubetide.cluster.access.connection import Connection
from kubetide.cluster.decoding import decode
from kubetide.cluster.discovery import DISCOVERY_TYPES, served_kinds
from kubetide.cluster.limits import Limits
from kubetide.cluster.observing import RequestObserver, Unobserved
from kubetide.cluster.paths import delete_options, path_of
from kubetide.cluster.reading import Reader
from kubetide.cluster.skew import Skew
from kubetide.cluster.transport import JSON, PROGRAM, Asked, Transport
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS, Kind
from kubetide.objects.workload import Scale
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Listing, PatchType, Propagation, WatchEvent
from kubetide.units.time import Duration

if TYPE_CHECKING:
    from kubetide.cluster.protobuf import ProtobufCodec

T = TypeVar("T")

_MEDIA_TYPES: dict[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


def is_protobuf_installed() -> bool:
    """Return whether the extra ``kubetide[protobuf]`` is there."""
    try:
        return find_spec("google.protobuf") is not None
    except ModuleNotFoundError:  # of ``google``
        return False


def _protobuf_codec() -> ProtobufCodec:
    from kubetide.cluster.protobuf import ProtobufCodec  # noqa: PLC0415  its library is an extra

    return ProtobufCodec()


encode = msgspec.json.Encoder().encode


class HttpCluster:
    """A cluster behind an API server; use it as a context manager, or call ``close``.

    Args:
        connection: Where it is, and who asks.
        clock: Time; it must be the running loop's.
        limits: Bounds on what is asked.
        seed: Of the jitter of pauses and of the lengths of watches.
        observer: Called for every request.
        refusal: Asked before each write is sent: why it may not be, empty when it may. What is refused
            raises Withheld. None lets all writes through.
        protobuf: Whether pods and nodes are asked for in protobuf, where the server speaks it. Needs the
            extra ``kubetide[protobuf]``.
        program: Who asks; the API server notes writes under this name (``managedFields``).

    Raises ImportError without that extra.

    Must be made while the event loop runs that will use it.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        *,
        limits: Limits | None = None,
        seed: int = 0,
        observer: RequestObserver | None = None,
        refusal: Callable[[], str] | None = None,
        protobuf: bool = False,
        program: str = PROGRAM,
    ) -> None:
        limits = limits or Limits()
        self._transport = Transport(
            connection,
            clock,
            limits=limits,
            seed=seed,
            observer=observer or Unobserved(),
            refusal=refusal,
            program=program,
        )
        codec = _protobuf_codec() if protobuf else None
        self._reader = Reader(
            self._transport, stall=limits.stall, most=limits.objects, seed=seed, codec=codec
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def skew(self) -> Skew:
        """How far our clock is from the server's."""
        return self._transport.skew

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    async def kinds(self) -> Sequence[Kind[Any]]:
        return await served_kinds(
            lambda path: self._transport.send(Asked("GET", path, accept=DISCOVERY_TYPES))
        )

    async def get_raw(
        self, path: str, query: Mapping[str, str] | None = None, *, hasty: bool = False
    ) -> bytes:
        """Return the body of an answer as it is.

        Args:
            path: Quoted, with its first slash.
            query: Not quoted.
            hasty: What fails is not asked again, unless the server names a pause.
        Raises: the ApiError of a refusal, Unavailable for no answer in time.
        """
        return await self._transport.send(Asked("GET", path, query, hasty=hasty))

    async def send_raw(
        self, method: str, path: str, query: Mapping[str, str] | None = None, *, body: Json | None = None
    ) -> bytes:
        """Send a request to a path that is no resource; return the body of the answer. As ``get_raw``."""
        data = None if body is None else encode(body)
        return await self._transport.send(Asked(method, path, query, data=data))

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        return await self._send("GET", path_of(kind, namespace, name), kind.model)

    async def list(
        self, kind: Kind[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        return await self._reader.list(kind, namespace=namespace, labels=labels, fields=fields)

    async def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[T], Any] | None = None,
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        stream = self._reader.watch(
            kind,
            resource_version=resource_version,
            namespace=namespace,
            labels=labels,
            fields=fields,
            keep=keep,
        )
        async with aclosing(stream) as batches:
            async for batch in batches:
                yield batch

    async def list_and_watch(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[T], Any] | None = None,
    ) -> AsyncGenerator[Listing[Any] | Sequence[WatchEvent[Any]], None]:
        stream = self._reader.list_and_watch(
            kind, namespace=namespace, labels=labels, fields=fields, keep=keep
        )
        async with aclosing(stream) as parts:
            async for part in parts:
                yield part

    def spread(self, pause: Duration) -> Duration:
        return self._reader.spread(pause)

    async def create(self, kind: Kind[T], body: Json, *, namespace: str = "", dry_run: bool = False) -> T:
        if kind.namespaced:
            namespace = namespace or (body.get("metadata") or {}).get("namespace") or ""
        path = path_of(kind, namespace)
        typed = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self._send("POST", path, kind.model, {"dryRun": "All"} if dry_run else None, body=typed)

    async def replace(
        self, kind: Kind[T], body: Json, *, namespace: str = "", subresource: Literal["", "status"] = ""
    ) -> T:
        meta = body.get("metadata") or {}
        path = path_of(kind, namespace or meta.get("namespace") or "", meta.get("name") or "", subresource)
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
        subresource: Literal["", "status", "resize"] = "",
    ) -> T:
        path = path_of(kind, namespace, name, subresource)
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
        options = delete_options(uid, resource_version, grace_period_s)
        options["propagationPolicy"] = propagation
        await self._transport.send(Asked("DELETE", path_of(kind, namespace, name), data=encode(options)))

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str) -> Scale:
        return await self._send("GET", path_of(kind, namespace, name, "scale"), Scale)

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
        return await self._send("PUT", path_of(kind, namespace, name, "scale"), Scale, body=body)

    async def bind(self, *, namespace: str, pod: str, node: str, uid: str = "") -> None:
        metadata = {"name": pod, "namespace": namespace} | ({"uid": uid} if uid else {})
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._transport.send(Asked("POST", path_of(PODS, namespace, pod, "binding"), data=encode(body)))

    async def evict(
        self, *, namespace: str, pod: str, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        options = delete_options(uid, "", grace_period_s)
        if options:
            body["deleteOptions"] = options
        await self._transport.send(
            Asked("POST", path_of(PODS, namespace, pod, "eviction"), data=encode(body))
        )

    async def _send(
        self,
        method: str,
        path: str,
        model: type[T],
        query: Mapping[str, str] | None = None,
        *,
        body: Json | Sequence[Json] | None = None,
        media_type: str = JSON,
    ) -> T:
        data = None if body is None else encode(body)
        asked = Asked(method, path, query, data=data, media_type=media_type)
        return decode(model, await self._transport.send(asked))
