"""Events about objects: equal ones are counted up, and an object that gets too many is cut off.

Source: client-go's event correlator: for each object a burst of 25 events, then one every five
minutes; an equal event raises the count of the one that is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kubetide.objects.base import Json
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import EVENTS
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


_Key = tuple[ObjectReference, str, str, str]


class EventWriter:
    """Writes events of one component; one that cannot be written is dropped and counted.

    An event is never worth a failed decision, so ``emit`` never raises an ApiError.
    """

    def __init__(self, cluster: Cluster, clock: Clock, component: str) -> None:
        self._cluster = cluster
        self._clock = clock
        self._component = component
        self._written: dict[_Key, _Written] = {}
        self._allowances: dict[ObjectReference, _Allowance] = {}
        self._created = 0
        self.dropped = 0
        """Events that were cut off or that the cluster refused."""

    async def emit(
        self, about: ObjectReference, level: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Writes an event, or counts up the equal one that is there."""
        now = self._clock.now()
        if not self._may(about, now):
            self.dropped += 1
            return
        key = (about, level, reason, message)
        known = self._written.pop(key, None)
        try:
            if known is None or not await self._count_up(about, known, now):
                known = await self._create(key, now)
        except ApiError:
            self.dropped += 1
            return
        self._written[key] = known
        if len(self._written) > _KEPT:
            del self._written[next(iter(self._written))]

    async def _count_up(self, about: ObjectReference, known: _Written, now: Instant) -> bool:
        """Whether the earlier event was still there."""
        patch: Json = {"count": known.count + 1, "lastTimestamp": format_rfc3339(now)}
        try:
            await self._cluster.patch(EVENTS, known.name, patch, namespace=_home(about))
        except NotFound:
            return False
        known.count += 1
        return True

    async def _create(self, key: _Key, now: Instant) -> _Written:
        about, level, reason, message = key
        # As upstream: the object's name and the time in hexadecimal; the count keeps two in one instant apart.
        self._created += 1
        name = f"{about.name}.{now + self._created % 1000:x}"
        stamp = format_rfc3339(now)
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": _home(about)},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": level,
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
        }
        await self._cluster.create(EVENTS, body, namespace=_home(about))
        return _Written(name, 1)

    def _may(self, about: ObjectReference, now: Instant) -> bool:
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


def _home(about: ObjectReference) -> str:
    """The namespace of the events; those of objects without one stand in ``default``, as upstream's do."""
    return about.namespace or "default"
