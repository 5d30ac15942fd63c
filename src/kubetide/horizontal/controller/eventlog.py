"""Events on HPAs: equal ones are counted up, and a source that talks too much is cut off.

Source: client-go's event correlator: a burst of 25 events an object, then one every five minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubetide.horizontal.events import COMPONENT, EventNote
from kubetide.horizontal.views import Key
from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS, HPAS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.time import Duration, Instant, format_rfc3339, seconds

_BURST = 25
_REFILL = seconds(300)
_KEPT = 4096


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

    def __init__(self, cluster: Cluster, clock: Clock, uid_of: Callable[[Key], str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._uid_of = uid_of
        self._written: dict[tuple[Key, EventNote], _Written] = {}
        self._allowances: dict[Key, _Allowance] = {}
        self._created = 0
        self.dropped = 0

    async def emit(self, hpa: Key, note: EventNote) -> None:
        """Writes an event, or counts up the equal one that is there."""
        now = self._clock.now()
        if not self._may(hpa, now):
            self.dropped += 1
            return
        known = self._written.pop((hpa, note), None)
        try:
            if known is None or not await self._count_up(hpa, known, now):
                known = await self._create(hpa, note, now)
        except ApiError:
            self.dropped += 1
            return
        self._written[hpa, note] = known
        if len(self._written) > _KEPT:
            del self._written[next(iter(self._written))]

    async def _count_up(self, hpa: Key, known: _Written, now: Instant) -> bool:
        """Whether the earlier event was still there."""
        patch: Json = {"count": known.count + 1, "lastTimestamp": format_rfc3339(now)}
        try:
            await self._cluster.patch(EVENTS, known.name, patch, namespace=hpa[0])
        except NotFound:
            return False
        known.count += 1
        return True

    async def _create(self, hpa: Key, note: EventNote, now: Instant) -> _Written:
        namespace, name = hpa
        # As upstream: the object's name and the time in hexadecimal; the count keeps two in one instant apart.
        self._created += 1
        event_name = f"{name}.{now + self._created % 1000:x}"
        stamp = format_rfc3339(now)
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": event_name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": HPAS.api_version,
                "kind": HPAS.kind,
                "namespace": namespace,
                "name": name,
                "uid": self._uid_of(hpa),
            },
            "type": note.type,
            "reason": note.reason,
            "message": note.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
        }
        await self._cluster.create(EVENTS, body, namespace=namespace)
        return _Written(event_name, 1)

    def _may(self, hpa: Key, now: Instant) -> bool:
        """Takes from the HPA's allowance of events, which fills up with time."""
        allowance = self._allowances.setdefault(hpa, _Allowance(_BURST, now))
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
