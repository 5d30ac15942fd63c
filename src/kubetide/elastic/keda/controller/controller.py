"""The controller of ScaledObjects that need an HPA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from kubetide.acting import (
    UNANSWERED,
    BackgroundWrites,
    Event,
    EventWriter,
    Unfinished,
    in_parallel,
    in_time,
    reference_to,
)
from kubetide.elastic.controller.shown import ShownCaches, ShownCluster, ShownOwners
from kubetide.elastic.decide import Notice
from kubetide.elastic.keda.answers import TriggerAnswer, answer_of
from kubetide.elastic.keda.commands import Commands, Outcome, Result, Write
from kubetide.elastic.keda.controller.owning import QueueHpas, QueueMetrics
from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.hpas import TriggerMetric
from kubetide.elastic.keda.outlook import SOURCE, intents
from kubetide.elastic.keda.servers import Servers
from kubetide.elastic.keda.sources import Source, read_source
from kubetide.elastic.keda.state import Answer, Delta, State
from kubetide.elastic.keda.triggers import Trigger
from kubetide.explain.reasons import Reason
from kubetide.horizontal.controller.slimming import slim_deployment
from kubetide.loop import NoSettings, OneStepLoop, Parts
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, REPLICA_SETS, SCALED_OBJECTS, STATEFUL_SETS, Kind
from kubetide.objects.meta import Key, ObjectMeta
from kubetide.objects.scaled_objects import needs_hpa
from kubetide.objects.timetables import ScaledObject
from kubetide.plan.board import Intent
from kubetide.ports.errors import ApiError, MetricsError, NotFound, Withheld, is_without_sockets
from kubetide.units.time import Duration, Instant, seconds

COMPONENT: Final = "keda-operator"
_PERIOD: Final = seconds(30)
_LIMIT: Final = 10


def _name_only(found: Any) -> Any:
    """Return what an HPA is to be known by."""
    return ObjectMeta(namespace=found.metadata.namespace, name=found.metadata.name)


def _is_followed(found: ScaledObject) -> bool:
    """Return whether an object is this loop's and stays: one that waits for a finalizer might as well be gone."""
    return needs_hpa(found) and not found.metadata.deletion_timestamp


class ScaledObjectsController(OneStepLoop[State, Delta, Commands, list[Outcome], Result]):
    """Queries each object's servers every ``pollingInterval``."""

    name = "scaledobjects"

    def __init__(self, parts: Parts, _settings: NoSettings) -> None:
        super().__init__(parts, ALGORITHM)
        self._informer = parts.caches.of(SCALED_OBJECTS)
        self._hpas = parts.caches.of(HPAS, keep=_name_only)
        # As the horizontal loop keeps them, so that both have one cache.
        self._deployments = parts.caches.of(DEPLOYMENTS, keep=slim_deployment)
        self._feed = self._informer.feed()
        self._events = EventWriter(parts.cluster, parts.clock, COMPONENT)
        self._kinds: dict[tuple[str, str], Kind[Any]] = {
            (kind.group, kind.kind): kind for kind in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS)
        }
        self.servers = Servers(parts.clock)
        self.shows = QueueHpas(self._informer)
        self._unwritten: dict[Key, Any] = {}
        self._writes = BackgroundWrites(self._write, lambda write: write.key, limit=_LIMIT)
        self._written = set[Key]()
        """Objects whose targets were changed since they were read."""
        self._statuses = BackgroundWrites(self._put_status, lambda key: key, limit=_LIMIT)

    @property
    def period(self) -> Duration:
        """Time between two ticks; an object that is due in between is queried then."""
        return _PERIOD

    async def synced(self) -> None:
        """Return once the kinds are synced, or refused."""
        await self._informer.answered()
        await self._hpas.answered()
        await self._deployments.answered()

    def next_wake(self) -> Instant | None:
        """Return when the next object is to be queried."""
        return min((one.due for one in self.state.memory.values()), default=None)

    async def wake(self) -> None:
        """Query the objects that are due."""
        await self.tick()

    def start_anew(self) -> None:
        """Drop derived state."""
        super().start_anew()
        self._informer.close_feed(self._feed)
        self._feed = self._informer.feed()

    async def close(self) -> None:
        """Close the channels to servers; withdraw the announcements; wait for no write any longer."""
        await self._writes.close()
        await self._statuses.close()
        await self._events.close()
        self._announce(())
        await self.servers.close()

    def view(self, parts: Parts) -> Parts:
        """Return parts in which followed objects appear as HPAs, and their metrics as external ones."""
        shown, sources = self.shows.shown, parts.sources
        cluster: Any = ShownCluster(parts.cluster, shown, self.shows)
        if sources is not None:
            metrics = QueueMetrics(sources.external, self.shows, self.servers, parts.clock)
            sources = sources._replace(external=metrics)
        return replace(
            parts,
            cluster=cluster,
            sources=sources,
            caches=ShownCaches(parts.cluster, parts.clock, parts.caches, shown, self.shows),
            owners=None if parts.owners is None else ShownOwners(parts.owners, shown),
        )

    # ── gather ──

    async def gather(self, now: Instant) -> Delta:
        """Apply changes and the servers' answers about the objects that are due; return them as a delta."""
        changes = self._changes()
        self.state.apply(changes)
        due = [key for key in self.state.due(now) if self.state.asks(key)]
        answers = tuple(await in_parallel(due, self._ask, limit=_LIMIT))
        self.state.apply(Delta(served=changes.served, answers=answers))
        return msgspec.structs.replace(changes, answers=answers)

    def _changes(self) -> Delta:
        changed = sorted(self._feed.drain().items())
        ours = [(key, one) for key, one in changed if one is not None and _is_followed(one)]
        gone = [key for key, one in changed if one is None or not _is_followed(one)]
        new = [read_source(one) for _, one in ours]
        known = self.state.sources | {one.key: one for one in new}
        served = [
            key
            for key, one in sorted(known.items())
            if key not in gone and (one.namespace, one.hpa) in self._hpas.objects
        ]
        return Delta(tuple(new), tuple(gone), tuple(served))

    async def _ask(self, key: Key) -> Answer:
        """Ask the servers and the target of an object; one that does not answer is named."""
        source = self.state.sources[key]
        # A paused object has a size, and no questions.
        triggers = () if source.paused else source.triggers
        found = await in_parallel(triggers, lambda one: self._ask_one(source, one), limit=_LIMIT)
        answer = answer_of(source, found)
        try:
            replicas, version = await self._size_of(source)
        except (ApiError, TimeoutError) as problem:
            error = str(problem) if isinstance(problem, ApiError) else UNANSWERED
            return msgspec.structs.replace(answer, active=False, by=(), error=error, replicas=1, unread=True)
        return msgspec.structs.replace(answer, replicas=replicas, version=version)

    async def _size_of(self, source: Source) -> tuple[int, str]:
        """Return the replicas and the version of a target; a Deployment's without a request. Raises ApiError, TimeoutError."""
        kind, key = await self._kind_of(source), source.key
        place = source.namespace, source.target.name
        # The cache may not have yet what was just written.
        written = key in self._written
        if key not in {write.key for write in self._writes.unfinished()}:
            self._written.discard(key)
        cached = self._deployments.objects if kind == DEPLOYMENTS and not self._deployments.failures else {}
        if not written and (known := cached.get(place)) is not None:
            return 1 if known.spec.replicas is None else known.spec.replicas, known.metadata.resource_version
        scale = await in_time(self.parts.cluster.get_scale(kind, place[1], namespace=place[0]))
        return scale.spec.replicas, scale.metadata.resource_version

    async def _ask_one(self, source: Source, trigger: Trigger) -> TriggerAnswer:
        active = False
        problems = []
        try:
            active = await self.servers.is_active(source, trigger)
        except MetricsError as error:
            problems.append(error)
        try:
            specs = await self.servers.metric_specs(source, trigger)
            asked = tuple(TriggerMetric(trigger.place, name, target) for name, target in specs)
        except MetricsError as error:
            problems.append(error)
            asked = self.shows.known(source, trigger)
        if source.fallback is not None and not problems:
            problems += await self._failures(source, trigger, asked)
        text = f"triggers[{trigger.place}]: {problems[0]}" if problems else ""
        offline = any(map(is_without_sockets, problems))
        return TriggerAnswer(trigger, asked, active=active, error=text, offline=offline)

    async def _failures(
        self, source: Source, trigger: Trigger, asked: Iterable[TriggerMetric]
    ) -> list[MetricsError]:
        """Return why metrics have no value; a fallback counts that, too."""
        try:
            for one in asked:
                await self.servers.metrics(source, trigger, one.name)
        except MetricsError as error:
            return [error]
        return []

    async def _kind_of(self, source: Source) -> Kind[Any]:
        """Return the kind of a target. Raises NotFound."""
        group_kind = source.target.api_version.rpartition("/")[0], source.target.kind
        if group_kind not in self._kinds:
            found = {(kind.group, kind.kind): kind for kind in await self.parts.cluster.kinds()}
            self._kinds = found | self._kinds
        if group_kind not in self._kinds:
            raise NotFound(f'no matches for kind "{group_kind[1]}" in group "{group_kind[0]}"')
        return self._kinds[group_kind]

    # ── act ──

    async def act(self, commands: Commands) -> list[Outcome]:
        """Start and stop targets; return the outcomes."""
        self._writes.ended()  # the target, which is read again, shows what has become of it
        found = await self._writes.carry_out(commands.writes)
        return [Outcome(pending=one.value) if isinstance(one, Unfinished) else one for one in found]

    def reasons(self, commands: Commands, result: Result) -> tuple[Reason, ...]:
        """Return the reasons of decisions and of outcomes."""
        return *commands.reasons, *result.reasons

    async def report(self, commands: Commands, result: Result) -> None:
        """Show the HPAs of the queried objects; write statuses and events."""
        self._show(self.state.answers.values(), dict(commands.fallbacks))
        self._announce(intents(self.state, commands.now))
        await self._hang_up()
        self._unwritten.update({key: msgspec.json.decode(status) for key, status in commands.statuses})
        self._statuses.ended()
        # Longest unwritten first, so that of thousands no object's is always the last.
        await self._statuses.begin([*self._unwritten])
        await self._events.emit_all(self._events_of((*commands.notices, *result.notices)))

    async def _write(self, write: Write) -> Outcome:
        source = self.state.sources[write.key]
        self._written.add(write.key)
        try:
            kind = await self._kind_of(source)
            await self.parts.cluster.replace_scale(
                kind,
                source.target.name,
                write.replicas,
                namespace=source.namespace,
                resource_version=write.version,
            )
        except Withheld:
            return Outcome(withheld=True)
        except ApiError as error:
            return Outcome(str(error))
        return Outcome()

    def _show(self, answers: Iterable[Answer], fallbacks: Mapping[Key, Sequence[tuple[str, int]]]) -> None:
        for answer in answers:
            if self.state.follows(answer.key):
                self.shows.fallbacks[answer.key] = dict(fallbacks.get(answer.key, ()))
                self.shows.show(self.state.sources[answer.key], answer.metrics)
        for key in [*self.shows.sources]:
            if key not in self.state.sources or not self.state.follows(key):
                self.shows.hide(key)

    def _announce(self, found: Sequence[Intent]) -> None:
        """Put up on the board what windows are about to ask for, and nothing else."""
        if self.parts.board is not None:
            self.parts.board.announce_all(SOURCE, found)

    async def _hang_up(self) -> None:
        """Close the connections to servers that no object names any more."""
        await self.servers.keep(
            {one.address for source in self.state.sources.values() for one in source.triggers if one.address}
        )

    async def _put_status(self, key: Key) -> None:
        """Write a status; one that fails is tried again at the next tick."""
        status = self._unwritten[key]
        try:
            await self.parts.cluster.patch(
                SCALED_OBJECTS,
                key[1],
                {"status": status},
                namespace=key[0],
                subresource="status",
            )
        except (NotFound, Withheld):
            pass
        except ApiError:
            return
        if self._unwritten.get(key) is status:  # else it has changed since
            del self._unwritten[key]

    def _events_of(self, notices: Iterable[Notice]) -> Iterator[Event]:
        for notice in notices:
            found = self._informer.objects.get(notice.key)
            if found is not None:
                about = reference_to(SCALED_OBJECTS, found.metadata)
                yield about, notice.level, notice.reason, notice.message
