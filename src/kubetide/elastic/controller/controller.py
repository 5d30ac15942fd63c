"""Writes the conditions of ElasticWorkloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import msgspec

from kubetide.acting import BackgroundWrites, EventWriter, Unfinished, reference_to
from kubetide.elastic.controller.advised import AdvisedCluster, AdvisedWorkloads
from kubetide.elastic.core import ALGORITHM
from kubetide.elastic.decide import Commands, Outcome, StatusWrite
from kubetide.elastic.state import Delta, OtherKey, State
from kubetide.elastic.verdicts import Other, other_hpa, other_vpa
from kubetide.loop import NoSettings, OneStepLoop, Parts
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS, VPAS
from kubetide.objects.meta import Key, ObjectMeta
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound, Withheld
from kubetide.units.time import Duration, Instant, minutes
from kubetide.watching import Informer

COMPONENT: Final = "kubetide-elastic"
_PERIOD: Final = minutes(1)
_LIMIT: Final = 10


class ElasticController(OneStepLoop[State, Delta, Commands, list[Outcome], None]):
    """Sets conditions that state whether each object is followed; other loops carry its sections out."""

    name = "elastic"

    def __init__(self, parts: Parts, _settings: NoSettings) -> None:
        super().__init__(parts, ALGORITHM)
        self.workloads = AdvisedWorkloads(parts.cluster, parts.clock, parts.caches.of(ELASTIC_WORKLOADS))
        self.cluster = cast("Cluster", AdvisedCluster(parts.cluster, self.workloads))
        self._others: dict[str, tuple[Informer[Any], Callable[[Any], Other]]] = {
            HPAS.kind: (parts.caches.of(HPAS, keep=other_hpa), other_hpa),
            VPAS.kind: (parts.caches.of(VPAS, keep=other_vpa), other_vpa),
        }
        self._feed = self.workloads.feed()
        self._other_feeds = {kind: informer.feed() for kind, (informer, _) in self._others.items()}
        self._events = EventWriter(parts.cluster, parts.clock, COMPONENT)
        self._writes = BackgroundWrites(self._write, lambda one: one.key, limit=_LIMIT)
        self.eager: asyncio.Event = asyncio.Event()
        self.workloads.on_change(self._changed)
        for informer, read in self._others.values():
            informer.on_change(partial(self._other_changed, read))

    def _changed(self, _: Key, old: ElasticWorkload | None, new: ElasticWorkload | None) -> None:
        if old is None or new is None or old.spec != new.spec or old.status.schedule != new.status.schedule:
            self.eager.set()

    def _other_changed(self, read: Callable[[Any], Other], _: Key, old: Any, new: Any) -> None:
        if old is None or new is None or _other(read, old) != _other(read, new):
            self.eager.set()

    @property
    def period(self) -> Duration:
        """Time between two ticks; a changed object does not wait for it."""
        return _PERIOD

    async def synced(self) -> None:
        """Return once each kind is synced, or refused."""
        await self.workloads.answered()
        for informer, _ in self._others.values():
            await informer.answered()

    def start_anew(self) -> None:
        """Drop derived state."""
        super().start_anew()
        self.workloads.close_feed(self._feed)
        self._feed = self.workloads.feed()
        for kind, (informer, _) in self._others.items():
            informer.close_feed(self._other_feeds[kind])
            self._other_feeds[kind] = informer.feed()

    async def gather(self, now: Instant) -> Delta:
        """Apply the changes of the objects; return them as a delta."""
        del now
        delta = self._changes()
        self.state.apply(delta)
        return delta

    def everything(self) -> Delta:
        """Return the whole state; every object is evaluated again, as after reading the record."""
        self.state.look_at_all()
        return self.state.dump()

    async def act(self, commands: Commands) -> list[Outcome]:
        """Write the statuses; return the outcomes."""
        self._writes.ended()  # the cache shows what has become of them
        found = await self._writes.carry_out(commands.writes)
        return [Outcome(one.value) if isinstance(one, Unfinished) else one for one in found]

    async def report(self, commands: Commands, result: None) -> None:
        """Write the events."""
        del result
        known = self.state.scene.workloads
        await self._events.emit_all(
            (reference_to(ELASTIC_WORKLOADS, known[one.key].metadata), one.level, one.reason, one.message)
            for one in commands.notices
            if one.key in known
        )

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._writes.close()
        await self._events.close()

    def _changes(self) -> Delta:
        changed = {
            key: None if found is None else slim(found) for key, found in sorted(self._feed.drain().items())
        }
        known = self.state.scene.workloads
        others: list[Other] = []
        gone: list[OtherKey] = []
        for kind, (_, read) in self._others.items():
            for key, found in sorted(self._other_feeds[kind].drain().items()):
                if found is None:
                    gone.append((kind, *key))
                else:
                    others.append(_other(read, found))
        return Delta(
            workloads=tuple(one for key, one in changed.items() if one is not None and one != known.get(key)),
            gone=tuple(key for key, one in changed.items() if one is None),
            others=tuple(others),
            gone_others=tuple(gone),
        )

    async def _write(self, write: StatusWrite) -> Outcome:
        namespace, name = write.key
        status = msgspec.json.decode(write.status)
        try:
            await self.cluster.patch(
                ELASTIC_WORKLOADS, name, {"status": status}, namespace=namespace, subresource="status"
            )
        except (NotFound, Withheld):
            return Outcome()
        except ApiError as error:
            return Outcome(str(error))
        return Outcome()


def slim(found: ElasticWorkload) -> ElasticWorkload:
    """Return an object with only the input of its conditions; records hold no more of it."""
    meta = found.metadata
    return msgspec.structs.replace(
        found,
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            generation=meta.generation,
            creation_timestamp=meta.creation_timestamp,
        ),
        status=msgspec.structs.replace(found.status, horizontal=None, vertical=None),
    )


def _other(read: Callable[[Any], Other], found: Any) -> Other:
    # A cluster of the same process gives whole objects.
    return found if isinstance(found, Other) else read(found)
