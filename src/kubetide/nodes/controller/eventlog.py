"""Events on pods, nodes and the status object: equal ones are counted up, a flood is cut off.

Source: client-go's event correlator: a burst of 25 events an object, then one every five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubetide.nodes.decision import EventRecord
from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.time import Duration, Instant, format_rfc3339, seconds

COMPONENT = "cluster-autoscaler"
_BURST = 25
_REFILL = seconds(300)
_KEPT = 4096

_Object = tuple[str, str, str]


@dataclass(slots=True)
class _Written:
    name: str
    count: int


@dataclass(slots=True)
class _Allowance:
    left: int
    since: Instant


class EventLog:
    """Writes events through the cluster; one that cannot be written is dropped and counted."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._written: dict[EventRecord, _Written] = {}
        self._allowances: dict[_Object, _Allowance] = {}
        self._created = 0
        self.dropped = 0

    async def emit(self, event: EventRecord) -> None:
        """Writes an event, or counts up the equal one that is there."""
        now = self._clock.now()
        if not self._may((event.kind, event.namespace, event.name), now):
            self.dropped += 1
            return
        known = self._written.pop(event, None)
        try:
            if known is None or not await self._count_up(event, known, now):
                known = await self._create(event, now)
        except ApiError:
            self.dropped += 1
            return
        self._written[event] = known
        if len(self._written) > _KEPT:
            del self._written[next(iter(self._written))]

    async def _count_up(self, event: EventRecord, known: _Written, now: Instant) -> bool:
        """Whether the earlier event was still there."""
        patch: Json = {"count": known.count + 1, "lastTimestamp": format_rfc3339(now)}
        try:
            await self._cluster.patch(EVENTS, known.name, patch, namespace=event.namespace or "default")
        except NotFound:
            return False
        known.count += 1
        return True

    async def _create(self, event: EventRecord, now: Instant) -> _Written:
        # As upstream: the object's name and the time in hexadecimal; the count keeps two in one instant apart.
        self._created += 1
        name = f"{event.name}.{now + self._created % 1000:x}"
        stamp = format_rfc3339(now)
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": event.namespace or "default"},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": event.kind,
                "namespace": event.namespace,
                "name": event.name,
                "uid": event.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
        }
        await self._cluster.create(EVENTS, body, namespace=event.namespace or "default")
        return _Written(name, 1)

    def _may(self, about: _Object, now: Instant) -> bool:
        """Takes from the object's allowance of events, which fills up with time."""
        allowance = self._allowances.pop(about, None) or _Allowance(_BURST, now)
        self._allowances[about] = allowance
        if len(self._allowances) > _KEPT:
            del self._allowances[next(iter(self._allowances))]
        refilled = Duration(now - allowance.since) // _REFILL
        if refilled:
            allowance.left = min(_BURST, allowance.left + refilled)
            allowance.since = Instant(allowance.since + refilled * _REFILL)
        if not allowance.left:
            return False
        allowance.left -= 1
        return True
