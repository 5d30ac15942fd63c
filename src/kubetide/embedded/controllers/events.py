"""Events about objects, the same one counted rather than repeated."""

from __future__ import annotations

from typing import Any, Literal

from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.seeds import uuid_of
from kubetide.units.time import format_rfc3339

_MOST_REMEMBERED = 4096


class EventSink:
    """Writes events as one component of a cluster."""

    def __init__(self, cluster: Cluster, clock: Clock, seed: int, component: str) -> None:
        self._cluster = cluster
        self._clock = clock
        self._seed = seed
        self._component = component
        self._written: dict[tuple[str, str, str], tuple[str, int]] = {}
        self.lost = 0
        """Events that the cluster refused; an event is never worth a failed sync."""

    async def record(
        self,
        kind: Kind[Any],
        meta: ObjectMeta,
        level: Literal["Normal", "Warning"],
        reason: str,
        message: str,
    ) -> None:
        """Writes an event, or counts it up when the same was written before."""
        identity = (meta.uid, reason, message)
        written = self._written.pop(identity, None)
        try:
            if written is not None and await self._count_up(meta.namespace, *written):
                self._written[identity] = (written[0], written[1] + 1)
                return
            name = f"{meta.name}.{uuid_of(self._seed, 'event', *identity, self._clock.now())[:18].replace('-', '')}"
            namespace = meta.namespace or "default"
            await self._cluster.create(
                EVENTS, self._body(kind, meta, name, level, reason, message), namespace=namespace
            )
        except ApiError:
            self.lost += 1
            return
        self._written[identity] = (name, 1)
        if len(self._written) > _MOST_REMEMBERED:
            del self._written[next(iter(self._written))]

    async def _count_up(self, namespace: str, name: str, count: int) -> bool:
        patch: Json = {"count": count + 1, "lastTimestamp": format_rfc3339(self._clock.now())}
        try:
            await self._cluster.patch(EVENTS, name, patch, namespace=namespace or "default")
        except NotFound:
            return False
        return True

    def _body(
        self, kind: Kind[Any], meta: ObjectMeta, name: str, level: str, reason: str, message: str
    ) -> Json:
        now = format_rfc3339(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "type": level,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "involvedObject": {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
            },
        }
