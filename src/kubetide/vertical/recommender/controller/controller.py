"""The recommender's controller: a tick gathers, decides, acts, absorbs and records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from kubetide.explain.records import Record, Recorder
from kubetide.loop import BaseLoop, HttpReply
from kubetide.objects.kinds import EVENTS, HPAS, PODS, VPA_CHECKPOINTS, VPAS
from kubetide.objects.meta import Key
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import ExternalMetricSource, MetricSource
from kubetide.units.time import Duration, Instant
from kubetide.vertical.controller.scales import WORKLOAD_KINDS
from kubetide.vertical.recommender.controller.act import Actor
from kubetide.vertical.recommender.controller.external import ExternalUsage
from kubetide.vertical.recommender.controller.gather import Gatherer
from kubetide.vertical.recommender.controller.notices import Notices, UsageHealth
from kubetide.vertical.recommender.controller.slimming import (
    slim_checkpoint,
    slim_controller,
    slim_pod,
    slim_pod_with_resources,
)
from kubetide.vertical.recommender.controller.targets import TargetReader
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.decide import absorb, checkpoints, decide
from kubetide.vertical.recommender.decision import Commands, Outcomes, Result
from kubetide.vertical.recommender.dump import dump
from kubetide.vertical.recommender.facts.history import HistoryError
from kubetide.vertical.recommender.facts.hpas import hpa_view
from kubetide.vertical.recommender.facts.ooms import EVICTED
from kubetide.vertical.recommender.facts.views import (
    CheckpointView,
    History,
    Oom,
    Samples,
    checkpoint_view,
    time_of,
)
from kubetide.vertical.recommender.pod_recommendation import answer_for_pod
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.conditions import PROVIDED, is_true
from kubetide.vertical.recommender.targets.new_targets import NewTargets
from kubetide.vertical.series import Steps
from kubetide.watching import Caches, Informer

LOOP = "recommender"
NO_NODE_LOOP = "recommender: --vpa-fit-node-groups needs the loop nodes in the same process; without it no target is lowered"


class RecommenderController(BaseLoop):
    """Writes recommendations into the statuses of VPAs, and checkpoints, as upstream's recommender does.

    Attributes:
        result: What the last pass came to.
        outcomes: What came of its writes.
        commands: What it decided.
        samples, ooms: What it was given of usage.
    """

    name = LOOP
    ticks_at_once = False
    """The first pass comes an interval after the caches are there, as upstream's."""

    def __init__(
        self,
        cluster: Cluster,
        metrics: MetricSource,
        clock: Clock,
        recorder: Recorder,
        settings: Settings,
        *,
        caches: Caches,
        board: Board | None = None,
        history: Callable[[], Awaitable[Sequence[History]]] | None = None,
        external: ExternalMetricSource | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the controller; it sends no request before the first tick.

        Args:
            caches: Shared with other loops; the process updates them.
            board: Where the node loop says what new nodes have left, and statuses are announced that are not written.
            history: Asks for what containers have used before, once at the start; with it no checkpoints are read.
            external: Where usage comes from, in place of ``metrics``, if the settings say so.
            warn: Takes a sentence that a person must see.
        """
        super().__init__()
        self._cluster = cluster
        self._clock = clock
        self._recorder = recorder
        self._history = history
        self._warn = warn
        self._state = State(settings)
        keep = slim_pod_with_resources if settings.needs_requests else slim_pod
        home = settings.vpa_object_namespace
        self._caches = caches
        self._vpas = vpas = caches.of(VPAS, namespace=home)
        pods = caches.of(PODS, keep=keep, namespace=home)
        controllers: dict[str, Informer[Any]] = {
            kind.kind: caches.of(kind, keep=slim_controller, namespace=home) for kind in WORKLOAD_KINDS
        }
        stored: Informer[Any] | None = None
        if settings.uses_checkpoints:
            stored = caches.of(VPA_CHECKPOINTS, keep=slim_checkpoint, namespace=home)
        evictions = caches.of(EVENTS, fields=f"reason={EVICTED}", namespace=home)
        self._required: tuple[Informer[Any], ...] = (vpas, pods, *([stored] if stored else []))
        self._optional: tuple[Informer[Any], ...] = (evictions, *controllers.values())
        targets = TargetReader(
            cluster,
            clock,
            {kind: informer.objects for kind, informer in controllers.items()},
            settings.update_worker_count,
        )
        hpas: Informer[Any] | None = None
        if settings.leave_to_hpa:
            hpas = caches.of(HPAS, keep=hpa_view, namespace=home)
            self._optional = (*self._optional, hpas)
        self._board = board
        if not settings.fit_node_groups:
            board = None
        if board is not None:
            board.asks_sizes = True
        usage = None
        if settings.use_external_metrics:
            assert external is not None, "a process with such settings has external metrics"
            usage = ExternalUsage(external, settings)
        self._gatherer = Gatherer(vpas, pods, evictions, stored, targets, metrics, clock, hpas, board, usage)
        self._actor = Actor(cluster, clock, settings)
        self._fresh, self._whole = True, False
        self._targets = NewTargets()
        self._notices = Notices(warn)
        self._tick = 0
        self.result = Result()
        self.outcomes = Outcomes()
        self.commands = Commands(clock.now())
        self.samples: Samples | None = None
        self.ooms: Sequence[Oom] = ()
        self.steps = Steps(clock)
        """How long the parts of the last pass took."""
        self.first_recommended: Sequence[Instant] = ()
        """When the VPA objects were created that the last pass gave their first recommendation."""

    @property
    def period(self) -> Duration:
        """The time between two passes."""
        return self._state.settings.recommender_interval

    @property
    def state(self) -> State:
        """The state that the last pass decided on; for explanations, not to be changed."""
        return self._state

    @property
    def decided(self) -> dict[Key, msgspec.Raw]:
        """The statuses of the last pass that differ from those that were stored before it.

        Advice writes none of them, so what is stored may be nobody's, or another recommender's.
        """
        found = (*self.commands.statuses, *self.commands.advice)
        return {(one.namespace, one.name): one.status for one in found}

    def answer_for_pod(self, body: bytes) -> HttpReply:
        """Return what the last pass recommends for a pod; 503 before there was one."""
        if not self._tick:
            return HttpReply(
                503, b'{"message":"no pass has ended here yet; a replica without the Lease makes none"}'
            )
        return answer_for_pod(self._state, self.decided, body)

    @property
    def sources(self) -> tuple[UsageHealth, ...]:
        """The source of usage."""
        return (self._gatherer.usage,)

    @property
    def metrics_error(self) -> str:
        """Why the last pass lacked samples; empty if it had all."""
        return self._gatherer.metrics_error

    @property
    def lost_ooms(self) -> int:
        """The number of ignored OOMs, because there were too many between two passes."""
        return self._gatherer.lost_ooms

    async def synced(self) -> None:
        """Return once VPAs, pods and checkpoints are synced, and every other kind is synced or refused."""
        for informer in self._required:
            await informer.synced()
        for informer in self._optional:
            await informer.answered()

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._actor.close()

    def start_anew(self) -> None:
        """Record the whole state with the next pass: the changes of a failed pass are in no record."""
        self._whole = True

    async def tick(self) -> None:
        """Gather, decide, act, absorb, record: once."""
        self.steps.begin()
        load, history = await self._past() if self._fresh else ((), ())
        delta = await self._gatherer.gather(self._state, self.steps, load=load, history=history)
        now = self._clock.now()
        self.samples, self.ooms = delta.samples, delta.ooms
        self._state.apply(delta)
        if self._fresh:
            self._notices.of_checkpoints(self._state.problems)
            if self._state.settings.fit_node_groups and not (self._board and self._board.tells_sizes):
                self._warn(NO_NODE_LOOP)
        self._fresh = False
        self._tick += 1
        full = self._recorder.wants_full(LOOP) or self._whole
        self._whole = False
        gathered = ALGORITHM.encode(dump(self._state) if full else delta)
        self.commands = commands = decide(self._state, now)
        without = self._without_recommendation(commands)
        contents = checkpoints(self._state, commands.checkpoints, now)
        # The checkpoints of a VPA, or of an ElasticWorkload, that cannot be read look as if nobody had any use for them.
        deletes = not any(one.unread for one in self._caches.all)
        self.outcomes = await self._actor.carry_out(commands, contents, self.steps, deletes=deletes)
        self._notices.of_writes(self.outcomes)
        self._announce_advice()
        self.result = absorb(self._state, commands, self.outcomes, now)
        self.first_recommended = self._created(without)
        self.steps.done("GarbageCollect")
        self._record(now, gathered, commands, full=full)

    def _announce_advice(self) -> None:
        """Put on the board what would be written if nothing was, so that the next loop can go on from it."""
        if self._board is not None:
            statuses = self.commands.statuses if self.outcomes.withheld else ()
            self._board.advised_statuses = {(one.namespace, one.name): bytes(one.status) for one in statuses}

    def _without_recommendation(self, commands: Commands) -> list[Key]:
        """Return the VPAs whose status is to be written and had no recommendation."""
        vpas = self._state.vpas
        keys = [(write.namespace, write.name) for write in commands.statuses]
        return [key for key in keys if not is_true(vpas[key].stored.conditions, PROVIDED)]

    def _created(self, without: Sequence[Key]) -> list[Instant]:
        """Return when those of the VPAs were created that have a recommendation by now."""
        found = []
        for key in without:
            vpa = self._state.vpas.get(key)
            if vpa is not None and is_true(vpa.stored.conditions, PROVIDED) and key in self._vpas.objects:
                created = time_of(self._vpas.objects[key].metadata.creation_timestamp)
                found += [] if created is None else [created]
        return found

    async def _past(self) -> tuple[Sequence[CheckpointView], Sequence[History]]:
        """Return what is known of containers from before the start."""
        if self._history is not None:
            try:
                return (), await self._history()
            except (HistoryError, MetricsError) as error:
                self._warn(f"recommender: no history from Prometheus, usage is counted from now on: {error}")
                return (), ()
        if not self._state.settings.uses_checkpoints:
            return (), ()
        home = self._state.settings.vpa_object_namespace
        listing = await self._cluster.list(VPA_CHECKPOINTS, namespace=home)
        return [checkpoint_view(one) for one in listing.items], ()

    def _record(self, now: Instant, gathered: bytes, commands: Commands, *, full: bool) -> None:
        reasons, repeated = self._targets.of(commands, full=full)
        self._recorder.write(
            Record(
                loop=LOOP,
                tick=self._tick,
                now=now,
                full=full,
                state=msgspec.Raw(gathered),
                commands=msgspec.Raw(ALGORITHM.encode(commands)),
                outcomes=msgspec.Raw(ALGORITHM.encode(self.outcomes)),
                result=msgspec.Raw(ALGORITHM.encode(self.result)),
                reasons=reasons,
                repeated=repeated,
            )
        )
