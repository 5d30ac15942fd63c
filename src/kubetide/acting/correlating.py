"""Correlation of events: which are written, and in which form; decided purely.

Source: client-go v1.36 (tools/record, EventCorrelator). In turn, for each event:

1. *Similar* events are those of one object, type and reason. Once 10 of them with different messages have
   come, none more than 10 minutes after the one before, further ones become one event whose message is
   the newest, marked as combined.
2. *Equal* events, of one message too, raise the count of the one that is there.
3. An object gets 25 events at once and then one every five minutes; what is more is dropped. It has been
   counted by then, so that the next one that is written includes it. A component may count otherwise (``SpamFilter``).

Not as upstream: which of the ten messages is evicted depends on Go's map order there; here
it is the newest, so that the first nine go on being counted one by one. All that is known of is held for
the newest 4,096 keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

import msgspec
from msgspec.structs import replace

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


class Written(msgspec.Struct, frozen=True):
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


class _Allowance(msgspec.Struct):
    left: int
    since: Instant


class SpamFilter(msgspec.Struct, frozen=True):
    """When there are too many events: the spam filter of client-go.

    Attributes:
        key: Events of one key share an allowance; from object, reason and message.
        burst: How many of these are written at once, before it is one every five minutes.
    """

    key: Callable[[ObjectReference, str, str], object]
    burst: int


def of_one_object(about: ObjectReference, _reason: str, _message: str) -> object:
    """Return what identifies the object: client-go's key of an allowance."""
    return _source(about)


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


DEFAULT_SPAM_FILTER: Final = SpamFilter(of_one_object, _BURST)


class Correlator:
    """Remembers the events of one component."""

    def __init__(self, spam_filter: SpamFilter = DEFAULT_SPAM_FILTER) -> None:
        self._spam_filter = spam_filter
        self._groups: _Newest[_Group] = _Newest()
        self._written: _Newest[Written] = _Newest()
        self._allowances: _Newest[_Allowance] = _Newest()

    def take(
        self, about: ObjectReference, level: Level, reason: str, message: str, *, name: str, now: Instant
    ) -> Written | None:
        """Return the event to write, None for a dropped one; a new one gets ``name``."""
        similar = _source(about), level, reason
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
        return written if self._may(self._spam_filter.key(about, reason, message), now) else None

    def _is_one_of_many(self, similar: _Similar, message: str, now: Instant) -> bool:
        group = self._groups.get(similar, lambda: _Group(now))
        if now - group.last > _SIMILAR_WITHIN:
            group.messages.clear()
        group.last = now
        if message not in group.messages and len(group.messages) == _MOST_SIMILAR - 1:
            return True
        group.messages.add(message)
        return False

    def _may(self, key: object, now: Instant) -> bool:
        """Take from the key's allowance of events, which fills up with time."""
        burst = self._spam_filter.burst
        allowance = self._allowances.get(key, lambda: _Allowance(burst, now))
        refilled = Duration(now - allowance.since) // _REFILL
        if refilled:
            allowance.left = min(burst, allowance.left + refilled)
            allowance.since = Instant(allowance.since + refilled * _REFILL)
        if not allowance.left:
            return False
        allowance.left -= 1
        return True


def _source(about: ObjectReference) -> _Source:
    return about.api_version, about.kind, about.namespace, about.name, about.uid
