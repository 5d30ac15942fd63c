"""Correlation of events: which are written, and in which form; decided purely.

Source: client-go v1.36 (tools/record, EventCorrelator). In turn, for each event:

1. *Similar* events are those of one object, type and reason. Once 10 of them with different messages have
   come, none more than 10 minutes after the one before, further ones become one event whose message is
   the newest, marked as combined.
2. *Equal* events, of one message too, raise the count of the one that is there.
3. An object gets 25 events at once and then one every five minutes; what is more is dropped. It has been
   counted by then, so that the next one that is written includes it.

Not as upstream: which of the ten messages is evicted depends on Go's map order there; here
it is the newest, so that the first nine go on being counted one by one. All that is known of is held for
the newest 4,096 keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from kubetide.objects.cluster import ObjectReference
from kubetide.units.time import Duration, Instant, minutes, seconds

Level = Literal["Normal", "Warning"]
V = TypeVar("V")

COMBINED = "(combined from similar events): "
"""What stands before the newest message of an event that stands for many similar ones."""

_MOST_SIMILAR = 10
_SIMILAR_WITHIN = minutes(10)
_BURST = 25
_REFILL = seconds(300)
_KEPT = 4096

_Source = tuple[str, str, str, str, str]
_Similar = tuple[_Source, Level, str]


@dataclass(frozen=True, slots=True)
class Written:
    """An event to be written.

    Attributes:
        name: Its own; while it is counted up, that of the first.
        is_new: Whether it is to be made; else the one of that name is brought up to this.
    """

    name: str
    message: str
    count: int
    first: Instant
    last: Instant
    is_new: bool


@dataclass(slots=True)
class _Group:
    """The messages of similar events, and when the last of them came."""

    last: Instant
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Allowance:
    left: int
    since: Instant


class _Newest(Generic[V]):
    """A map that forgets what has not been asked for the longest."""

    def __init__(self) -> None:
        self._held: dict[object, V] = {}

    def get(self, key: object, default: Callable[[], V]) -> V:
        value = self._held.pop(key, None)
        if value is None:
            value = default()
        self.put(key, value)
        return value

    def find(self, key: object) -> V | None:
        return self._held.get(key)

    def put(self, key: object, value: V) -> None:
        self._held.pop(key, None)
        self._held[key] = value
        if len(self._held) > _KEPT:
            del self._held[next(iter(self._held))]


class Correlator:
    """Remembers the events of one component."""

    def __init__(self) -> None:
        self._groups: _Newest[_Group] = _Newest()
        self._written: _Newest[Written] = _Newest()
        self._allowances: _Newest[_Allowance] = _Newest()

    def take(
        self, about: ObjectReference, level: Level, reason: str, message: str, *, name: str, now: Instant
    ) -> Written | None:
        """Return the event to write, None for a dropped one; a new one gets ``name``."""
        source = (about.api_version, about.kind, about.namespace, about.name, about.uid)
        similar = source, level, reason
        if self._is_one_of_many(similar, message, now):
            message = COMBINED + message
            key: object = similar
        else:
            key = similar, about.field_path, message
        known = self._written.find(key)
        if known is None:
            written = Written(name, message, 1, now, now, is_new=True)
        else:
            written = replace(known, message=message, count=known.count + 1, last=now, is_new=False)
        self._written.put(key, written)
        return written if self._may(source, now) else None

    def _is_one_of_many(self, similar: _Similar, message: str, now: Instant) -> bool:
        group = self._groups.get(similar, lambda: _Group(now))
        if now - group.last > _SIMILAR_WITHIN:
            group.messages.clear()
        group.last = now
        if message not in group.messages and len(group.messages) == _MOST_SIMILAR - 1:
            return True
        group.messages.add(message)
        return False

    def _may(self, source: _Source, now: Instant) -> bool:
        """Take from the object's allowance of events, which fills up with time."""
        allowance = self._allowances.get(source, lambda: _Allowance(_BURST, now))
        refilled = Duration(now - allowance.since) // _REFILL
        if refilled:
            allowance.left = min(_BURST, allowance.left + refilled)
            allowance.since = Instant(allowance.since + refilled * _REFILL)
        if not allowance.left:
            return False
        allowance.left -= 1
        return True
