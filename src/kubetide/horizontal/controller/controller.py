"""The horizontal controller: a tick gathers, decides, acts, absorbs and records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from kubetide.acting import EventWriter, in_turns
from kubetide.explain.pieces import PIECES_FROM
from kubetide.explain.records import Record, Recorder
from kubetide.horizontal.controller.act import Actor, Ending
from kubetide.horizontal.controller.figures import HpaFigures
from kubetide.horizontal.controller.gather import Gatherer
from kubetide.horizontal.controller.left_alone import NoOthers, OwnChanges
from kubetide.horizontal.controller.past import PastChanges, memory_after
from kubetide.horizontal.controller.slimming import slim_deployment, slim_hpa, slim_replica_set
from kubetide.horizontal.controller.sources import GuardedSource
from kubetide.horizontal.controller.targets import Targets
from kubetide.horizontal.controller.values import ValueReader
from kubetide.horizontal.core import (
    encode_commands,
    encode_delta,
    encode_in_pieces,
    encode_outcomes,
    encode_result,
)
from kubetide.horizontal.decide import absorbing, deciding
from kubetide.horizontal.decision import Commands, LateScale, Result, ScaleOutcome
from kubetide.horizontal.explain.changes import ChangedReasons
from kubetide.horizontal.facts.views import CapacityView, view_of_pod
from kubetide.horizontal.options.forecasting import OF_HPA, intents, of_targets
from kubetide.horizontal.options.forecasting import SOURCE as FORECAST
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.horizontal.status.events import COMPONENT
from kubetide.loop import BaseLoop, Owners
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, PODS, REPLICA_SETS, STORED_KINDS, Kind
from kubetide.objects.meta import Key
from kubetide.plan.board import Board, Intent, Workload
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, as_remote
from kubetide.ports.metrics import CustomMetricSource, ExternalMetricSource, MetricSource
from kubetide.units.steps import AT_ONCE, Steps
from kubetide.units.time import ZERO, Duration, Instant
from kubetide.watching import Caches, Informer, holds_of

LOOP = "horizontal"


class HorizontalController(BaseLoop):
    """Scales pods out and in, as upstream's HPA controller does.

    All HPAs are looked at together, once per sync period; upstream gives each a period of its own. With v1.37, or where
    the settings say so, those that are new, or have a new spec, are looked at at once, too.
    """

    name = LOOP

    def __init__(
        self,
        cluster: Cluster,
        metrics: MetricSource,
        clock: Clock,
        recorder: Recorder,
        board: Board | None,
        settings: Settings,
        *,
        caches: Caches,
        kinds: Iterable[Kind[Any]] = STORED_KINDS,
        custom: CustomMetricSource | None = None,
        external: ExternalMetricSource | None = None,
        owners: Owners | None = None,
        advises: bool = False,
    ) -> None:
        """Prepare the controller; it sends no request before the first tick.

        Args:
            caches: Shared with other loops; the process updates them.
            kinds: What a ``scaleTargetRef`` may mean without asking the cluster what it serves.
            custom: For metrics of type Pods and Object; without it they fail as where the API is not served.
            external: For metrics of type External, likewise.
            owners: Which HPAs another controller serves: they are not there for this one. None where nobody else is.
            advises: Whether others scale: then their changes count for the rate limits, as if they were its own.
        """
        super().__init__()
        # With v1.36 HPAs are looked at first a period after they have come to be known.
        self.ticks_at_once = settings.looks_at_once
        self._clock = clock
        self._recorder = recorder
        self._board = board
        self._state = State(settings)
        hpas, pods = caches.of(HPAS, keep=self._slim_hpa), caches.of(PODS, keep=view_of_pod)
        deployments = caches.of(DEPLOYMENTS, keep=slim_deployment)
        replica_sets = caches.of(REPLICA_SETS, keep=slim_replica_set)
        self._informers: tuple[Informer[Any], ...] = (hpas, pods, deployments, replica_sets)
        workloads = {(i.kind.group, i.kind.kind): i.objects for i in (deployments, replica_sets)}
        targets = self._targets = Targets(cluster, kinds, workloads, clock)
        owners = owners or NoOthers()
        own = OwnChanges(hpas.feed(), hpas.objects, owners)
        self._hpas, self._pods = hpas, pods
        if settings.looks_at_once:
            self.eager = asyncio.Event()
            hpas.on_change(self._changed)
        self._feed = pods.feed()
        self._anew = False
        self._remote = as_remote(cluster) is not None
        values = ValueReader(custom, external, clock)
        self._gatherer = Gatherer(
            own,
            self._feed,
            targets,
            metrics,
            values,
            clock,
            self._holds,
            PastChanges(cluster, clock) if advises else None,
            own.left_alone,
        )
        self._actor = Actor(
            cluster,
            clock,
            targets,
            EventWriter(cluster, clock, COMPONENT, program="kubetide"),
            uid_of=self._uid_of,
            owners=owners,
            limit=settings.concurrent_syncs,
        )
        self._late: list[LateScale] = []
        self._tick = 0
        self._changed_reasons = ChangedReasons()
        self._figures = HpaFigures()
        self._announced: dict[Key, tuple[Workload, int]] = {}
        self.result = self._whole = Result(())
        """What the last tick came to, with the labels of the loop's own metrics."""
        self.endings: Mapping[Key, Ending] = MappingProxyType({})
        """How the last tick ended for the HPAs that had anything to write or to say."""

    @property
    def period(self) -> Duration:
        """The sync period."""
        return self._state.settings.sync_period

    @property
    def holds(self) -> Sequence[str]:
        """Why the last tick held all scale-downs."""
        return self._state.holds

    @property
    def undecided(self) -> dict[str, str]:
        """Why the last whole tick decided nothing, by NAMESPACE/NAME of the HPAs that want somebody to change something."""
        return {
            "/".join(one.verdict.key): one.error
            for one in self._whole.settlements
            if one.error and one.verdict.stage in {"unread", "uncomputed"}
        }

    @property
    def state(self) -> State:
        """The state that the last tick decided on; for explanations, not to be changed."""
        return self._state

    @property
    def sources(self) -> tuple[GuardedSource, ...]:
        """The guards of the metric sources, with the last error of each."""
        return self._gatherer.sources

    async def synced(self) -> None:
        """Return once all caches that the loop needs are synced."""
        for informer in self._informers:
            await informer.synced()
        if self.eager is not None:
            self.eager.clear()  # the first tick is for all that there is

    def _changed(
        self, _: Key, old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None
    ) -> None:
        assert self.eager is not None, "it hears of changes"
        if new is not None and (old is None or _has_new_spec(old, new)):
            self.eager.set()

    async def tick(self) -> None:
        """Gather, decide, act, absorb and record, once. The caches must be synced."""
        await self._look()

    async def early(self) -> None:
        """Do the same for HPAs that are new or have a new spec; for all where the record must hold the whole state."""
        await self._look(early=not (self._anew or self._recorder.wants_full(LOOP)))

    async def _look(self, *, early: bool = False) -> None:
        for key in await self._actor.late_statuses():
            self._gatherer.suspect(key)
        self._late += self._actor.late()
        delta = await self._gatherer.gather(self._state, early=early)
        delta = self._with_nodes(delta)
        if not early:
            delta = self._with_late(delta)
        now = self._clock.now()
        clock = self._clock
        await in_turns(self._state.applying(delta), clock)
        self._tick += 1
        full = self._anew or self._recorder.wants_full(LOOP)
        gathered = await in_turns(self._encoding(delta, full=full), clock)
        commands = await in_turns(deciding(self._state, now), clock)
        outcomes = await self._actor.scale(commands)
        result = await in_turns(absorbing(self._state, commands, outcomes), clock)
        self.result = result
        if not early:
            self._whole = result
        self._announce(result, delta.gone_hpas, now)
        endings = await self._actor.settle(result)
        for ending in endings:
            if ending.status_error or not ending.is_written:
                self._gatherer.suspect(ending.settlement.verdict.key)
        self.endings = MappingProxyType({ending.settlement.verdict.key: ending for ending in endings})
        await self._record(now, gathered, commands, outcomes, result, full=full)
        self._anew = False

    def _with_late(self, delta: Delta) -> Delta:
        """Add the outcomes of earlier writes that have come since; they count before anything is decided."""
        late, self._late = tuple(self._late), []
        if not late:
            return delta
        memory = (*delta.memory, *memory_after(self._state, late))
        return msgspec.structs.replace(delta, memory=memory, late=late)

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._actor.close()

    def start_anew(self) -> None:
        """Drop all but the memory: the next tick reads the caches again, and its record is a full one."""
        memory = self._state.memories()
        self._state = State(self._state.settings)
        self._state.apply(Delta(memory=memory))
        self._pods.close_feed(self._feed)
        self._feed = self._pods.feed()
        self._gatherer.start_anew(self._hpas, self._feed)
        self._anew = True

    def _encoding(self, delta: Delta, *, full: bool) -> Steps[bytes | Iterator[bytes]]:
        """Return what was gathered, or everything with this tick's samples and values, as it is before deciding.

        Where pods are many they come in pieces, made when the record is written.
        """
        large = len(self._state.table.rows) >= AT_ONCE
        if full:
            values = tuple(self._state.values.values())
            delta = msgspec.structs.replace(self._state.dump(), answers=delta.answers, values=values)
            if large:
                yield
        encoded = encode_in_pieces(delta) if len(delta.pods) >= PIECES_FROM else encode_delta(delta)
        if large:
            yield
        return encoded

    def _holds(self, settings: Settings) -> Sequence[str]:
        return holds_of(self._pods, self._clock.now(), settings, may_be_old=self._remote)

    def _slim_hpa(self, hpa: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
        key = hpa.metadata.namespace, hpa.metadata.name
        return slim_hpa(hpa, self._state.views.get(key), self._state.statuses.get(key))

    def _uid_of(self, key: Key) -> str:
        view = self._state.views.get(key)
        return view.uid if view else ""

    # ── the board ──

    def _with_nodes(self, delta: Delta) -> Delta:
        """Add what the node loop says now of replicas that have no node, where that has changed."""
        known = self._state.nodes
        answers = {} if self._board is None else {one.workload: one for one in self._board.answers()}
        if not answers and not known:
            return delta
        found = {
            key: CapacityView(*key, answer.missing, answer.refused, answer.expected, answer.detail)
            for key, (workload, _) in self._announced.items()
            if (answer := answers.get(workload)) is not None
        }
        keys = sorted({*known, *found}.difference(delta.gone_hpas))
        changed = tuple(
            found.get(key, CapacityView(*key)) for key in keys if found.get(key) != known.get(key)
        )
        return msgspec.structs.replace(delta, nodes=changed) if changed else delta

    def _announce(self, result: Result, gone: Sequence[Key], now: Instant) -> None:
        """Announce the desired replicas on the board, before there are pods."""
        if self._board is None:
            return
        for key in gone:
            known = self._announced.pop(key, None)
            if known is not None:
                self._board.withdraw(known[0], LOOP)
        self._announce_forecasts(now)
        for settlement in result.settlements:
            if settlement.desired is None:
                continue
            key = settlement.verdict.key
            spec = self._state.specs[key]
            known, kind = self._announced.get(key), self._targets.name_of(spec)
            if (
                known is not None
                and known[1] == settlement.desired
                and known[0].name == spec.target
                and known[0].kind == kind
            ):
                continue
            workload = Workload(namespace=key[0], kind=kind, name=spec.target)
            if known is not None and known[0] != workload:
                self._board.withdraw(known[0], LOOP)
            self._announced[key] = workload, settlement.desired
            self._board.announce(Intent(workload=workload, replicas=settlement.desired, due=now, source=LOOP))

    def _announce_forecasts(self, now: Instant) -> None:
        """Announce forecasts on the board: nodes take longer to come than pods."""
        assert self._board is not None
        kind_of = self._targets.name_of
        bounds = of_targets(self._state, self._board.intents(), kind_of)
        self._board.announce_all(OF_HPA, bounds)
        self._board.announce_all(FORECAST, intents(self._state, now, kind_of))

    # ── the record ──

    async def _record(
        self,
        now: Instant,
        gathered: bytes | Iterator[bytes],
        commands: Commands,
        outcomes: Sequence[ScaleOutcome],
        result: Result,
        *,
        full: bool,
    ) -> None:
        reasons, repeated = await in_turns(
            self._changed_reasons.of(result, self._state.specs, self._state.holds, full=full), self._clock
        )
        encoded = encode_result(result)
        if len(result.settlements) >= AT_ONCE:
            await self._clock.sleep(ZERO)
        record = Record(
            loop=LOOP,
            tick=self._tick,
            now=now,
            full=full,
            state=msgspec.Raw(gathered if isinstance(gathered, bytes) else b"{}"),
            commands=msgspec.Raw(encode_commands(commands)),
            outcomes=msgspec.Raw(encode_outcomes(outcomes)),
            result=msgspec.Raw(encoded),
            reasons=reasons,
            repeated=repeated,
            figures=() if self._state.early is not None else self._figures.of(self._state, result, now),
        )
        if isinstance(gathered, bytes):
            self._recorder.write(record)
        else:
            await in_turns(self._recorder.write_in_pieces(record, gathered), self._clock)


def _has_new_spec(old: HorizontalPodAutoscaler, new: HorizontalPodAutoscaler) -> bool:
    """Compare the generations, and the specs, as servers before v1.37 count no generations of HPAs."""
    return old.metadata.generation != new.metadata.generation or old.spec != new.spec
