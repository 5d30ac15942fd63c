"""Events about objects: equal ones are counted, similar ones combined, and bursts limited.

What is written is decided in ``correlating``. Source: client-go v1.36 (tools/record).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from kubetide.acting.correlating import DEFAULT_SPAM_FILTER, Correlator, Level, SpamFilter, Written
from kubetide.objects.base import Json
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import EVENTS, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.time import format_rfc3339, seconds, to_seconds

_LONGEST_NOTE = 1024
_CUT = " ..."
_MOST_WAITING: Final = 1000
"""Source: client-go v1.36, the queue of an event broadcaster."""
_PATIENCE: Final = seconds(1)
"""So long ``emit_all`` waits for its events to be written, before it goes on without them."""

Event = tuple[ObjectReference, Level, str, str]
"""Object, level, reason and message."""


class _Due(msgspec.Struct, frozen=True):
    """An event that is to be written."""

    about: ObjectReference
    level: Level
    reason: str
    written: Written


def cut_note(message: str) -> str:
    """Return a message no longer than an event may be, in bytes.

    Source: events.k8s.io/v1, and how kube-scheduler 1.36 cuts what it says of a pod that fits nowhere.
    """
    if len(message) <= _LONGEST_NOTE // 4:
        return message
    encoded = message.encode(errors="replace")
    if len(encoded) <= _LONGEST_NOTE:
        return message
    return encoded[: _LONGEST_NOTE - len(_CUT)].decode(errors="ignore") + _CUT


def reference_to(kind: Kind[Any], meta: ObjectMeta) -> ObjectReference:
    """Return the reference to an object at hand."""
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


class EventWriter:
    """Writes events of one component; an event that cannot be written is dropped and counted.

    An event is never worth a failed decision, so no method raises an ApiError.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        component: str,
        *,
        program: str = "",
        spam_filter: SpamFilter = DEFAULT_SPAM_FILTER,
    ) -> None:
        """Prepare the writer.

        Args:
            component: Whom the events are from, in upstream's name where it stands for an upstream program.
            program: Which program really wrote them (``reportingInstance``); empty for none.
            spam_filter: Which events are too many; by default as client-go says.
        """
        self._cluster = cluster
        self._clock = clock
        self._component = component
        self._program = program
        self._correlator = Correlator(spam_filter)
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting: deque[_Due] = deque()
        self._background: asyncio.Task[None] | None = None
        self._taken = 0
        self.dropped = 0
        """Events that were cut off or that the cluster refused."""

    async def record(
        self, kind: Kind[Any], meta: ObjectMeta, level: Level, reason: str, message: str
    ) -> None:
        """Write an event about an object at hand."""
        await self.emit(reference_to(kind, meta), level, reason, message)

    async def emit(self, about: ObjectReference, level: Level, reason: str, message: str) -> None:
        """Write an event, or increase the count of an existing one."""
        due = self._take(about, level, reason, message)
        if due is not None:
            await self._write(due)

    async def emit_all(self, events: Iterable[Event]) -> None:
        """Write the events in their order, but wait no longer than a second: the others are written in the background.

        So neither many events, at few requests a second, nor one that hangs hold up a tick. As upstream 1,000 may wait, and what is more is dropped.
        """
        for event in events:
            due = self._take(*event)
            if due is not None and len(self._waiting) >= _MOST_WAITING:
                self.dropped += 1
            elif due is not None:
                self._waiting.append(due)
        if self._background is not None:
            if not self._background.done():
                return
            self._end_of(self._background)
        if self._waiting:
            task = self._background = asyncio.create_task(self._write_waiting())
            with suppress(TimeoutError):
                async with asyncio.timeout(to_seconds(_PATIENCE)):
                    await asyncio.shield(task)
            if task.done():
                self._end_of(task)

    def _end_of(self, task: asyncio.Task[None]) -> None:
        """Raise what a bug has raised in the background."""
        self._background = None
        task.result()

    async def close(self) -> None:
        """Write no more of the events that wait."""
        self.dropped += len(self._waiting)
        self._waiting.clear()
        if self._background is not None:
            self.dropped += not self._background.done()  # the one that is under way
            self._background.cancel()
            with suppress(asyncio.CancelledError):
                await self._background
            self._background = None

    async def _write_waiting(self) -> None:
        while self._waiting:
            await self._write(self._waiting.popleft())

    def _take(self, about: ObjectReference, level: Level, reason: str, message: str) -> _Due | None:
        now = self._clock.now()
        # As upstream: the object's name and the time in hexadecimal; the count keeps two in one instant apart.
        self._taken += 1
        name = f"{about.name}.{now + self._taken % 1000:x}"
        written = self._correlator.take(about, level, reason, message, name=name, now=now)
        if written is None:
            self.dropped += 1
            return None
        return _Due(about, level, reason, written)

    async def _write(self, due: _Due) -> None:
        # One request at a time for each event: it must be there before it is counted up.
        lock = self._under_way.setdefault(due.written.name, asyncio.Lock())
        try:
            async with lock:
                if due.written.is_new or not await self._count_up(due.about, due.written):
                    await self._create(due.about, due.level, due.reason, due.written)
        except ApiError:
            self.dropped += 1

    async def _count_up(self, about: ObjectReference, written: Written) -> bool:
        """Return whether the earlier event was still there."""
        patch: Json = {
            "count": written.count,
            "lastTimestamp": format_rfc3339(written.last),
            "message": written.message,
        }
        try:
            await self._cluster.patch(EVENTS, written.name, patch, namespace=_home(about))
        except NotFound:
            return False
        return True

    async def _create(self, about: ObjectReference, level: Level, reason: str, written: Written) -> None:
        involved = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        further = {"resourceVersion": about.resource_version, "fieldPath": about.field_path}
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": written.name, "namespace": _home(about)},
            "involvedObject": involved | {key: text for key, text in further.items() if text},
            "type": level,
            "reason": reason,
            "message": written.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            **({"reportingInstance": self._program} if self._program else {}),
            "count": written.count,
            "firstTimestamp": format_rfc3339(written.first),
            "lastTimestamp": format_rfc3339(written.last),
        }
        await self._cluster.create(EVENTS, body, namespace=_home(about))


def _home(about: ObjectReference) -> str:
    """The namespace of the events; those of objects without one stand in ``default``, as upstream's do."""
    return about.namespace or "default"
