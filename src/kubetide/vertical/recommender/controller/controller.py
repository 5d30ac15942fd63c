"""The recommender's controller: every interval it gathers, decides, acts, absorbs and records."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from kubetide.explain.records import Record, Recorder
from kubetide.objects.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    VPA_CHECKPOINTS,
    VPAS,
    Kind,
)
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import MetricSource
from kubetide.units.time import Duration, Instant
from kubetide.vertical.recommender.controller.act import Actor
from kubetide.vertical.recommender.controller.gather import Gatherer
from kubetide.vertical.recommender.controller.slimming import slim_checkpoint, slim_controller, slim_pod
from kubetide.vertical.recommender.controller.targets import TargetReader
from kubetide.vertical.recommender.core import (
    encode_commands,
    encode_delta,
    encode_outcomes,
    encode_result,
)
from kubetide.vertical.recommender.decide import absorb, checkpoints, decide
from kubetide.vertical.recommender.decision import Commands, Outcomes, Result
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.dump import dump
from kubetide.vertical.recommender.history import HistoryError
from kubetide.vertical.recommender.new_targets import NewTargets
from kubetide.vertical.recommender.ooms import EVICTED
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.views import CheckpointView, History, checkpoint_view
from kubetide.watching import Caches, Informer

LOOP = "recommender"

_CONTROLLERS: tuple[Kind[Any], ...] = (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)


class RecommenderController:
    """Writes recommendations into the statuses of VPAs, and checkpoints, as upstream's recommender does.

    Attributes:
        result: What the last pass came to.
        outcomes: What came of its writes.
        bugs: Passes that ended with a bug; the loop goes on.
        last_tick: When the last pass ended well; None before the first.
    """

    def __init__(
        self,
        cluster: Cluster,
        metrics: MetricSource,
        clock: Clock,
        recorder: Recorder,
        settings: Settings,
        *,
        history: Callable[[], Awaitable[Sequence[History]]] | None = None,
        caches: Caches | None = None,
    ) -> None:
        """Prepare the controller; nothing is asked before ``run``.

        Args:
            history: Asks for what containers have used before, once at the start; with it no checkpoints are read.
            caches: Shared with other loops, and kept by whoever made them; None for caches of its own.
        """
        self._cluster = cluster
        self._metrics = metrics
        self._clock = clock
        self._recorder = recorder
        self._history = history
        self._own_caches = Caches(cluster, clock) if caches is None else None
        found = caches or self._own_caches
        assert found is not None
        self._caches = found
        self._state = State(settings)
        self._gatherer: Gatherer | None = None
        self._actor = Actor(cluster, clock, settings)
        self._fresh = True
        self._targets = NewTargets()
        self._tick = 0
        self.result = Result()
        self.outcomes = Outcomes()
        self.history_error = ""
        """Why there is no history; empty where there is, or where none was asked for."""
        self.bugs = 0
        self.last_failure = ""
        self.last_tick: Instant | None = None

    @property
    def state(self) -> State:
        """What the last pass was decided from; for explaining, not for changing."""
        return self._state

    @property
    def metrics_error(self) -> str:
        """Why the last pass had no samples; empty where it had."""
        return "" if self._gatherer is None else self._gatherer.metrics_error

    async def run(self) -> None:
        """Keep the caches and make a pass every interval, the first one an interval after the start."""
        async with asyncio.TaskGroup() as tasks:
            await self._prepare(tasks)
            start, period, count = self._clock.now(), self._state.settings.recommender_interval, 0
            while True:
                count = max(count + 1, (self._clock.now() - start) // period)
                await self._clock.sleep(Duration(start + count * period - self._clock.now()))
                try:
                    await self.tick()
                except Exception:  # noqa: BLE001  # the rim of the loop: counted, noted, and the next pass is tried
                    self.bugs += 1
                    self.last_failure = traceback.format_exc()

    async def _prepare(self, tasks: asyncio.TaskGroup) -> None:
        """Begin the caches of what the cluster serves, and wait until they are filled."""
        served = {(kind.group, kind.kind) for kind in await self._cluster.kinds()}
        vpas, pods = self._caches.of(VPAS), self._caches.of(PODS, keep=slim_pod)
        controllers: dict[str, Informer[Any]] = {
            kind.kind: self._caches.of(kind, keep=slim_controller)
            for kind in _CONTROLLERS
            if (kind.group, kind.kind) in served
        }
        stored = None
        if self._state.settings.uses_checkpoints:
            stored = self._caches.of(VPA_CHECKPOINTS, keep=slim_checkpoint)
        evictions = Informer(self._cluster, EVENTS, self._clock, fields=f"reason={EVICTED}")
        targets = TargetReader(
            self._cluster,
            self._clock,
            {kind: informer.objects for kind, informer in controllers.items()},
            self._state.settings.update_worker_count,
        )
        self._gatherer = Gatherer(vpas, pods, evictions, stored, targets, self._metrics, self._clock)
        if self._own_caches is not None:
            tasks.create_task(self._own_caches.run())
        tasks.create_task(evictions.run())
        informers: list[Informer[Any]] = [
            vpas,
            pods,
            evictions,
            *controllers.values(),
            *([stored] if stored else []),
        ]
        for informer in informers:
            await informer.synced()

    async def tick(self) -> None:
        """Gather, decide, act, absorb, record: once. The caches must be filled."""
        assert self._gatherer is not None
        load, history = await self._past() if self._fresh else ((), ())
        delta = await self._gatherer.gather(self._state, load=load, history=history)
        now = self._clock.now()
        self._state.apply(delta)
        self._fresh = False
        self._tick += 1
        full = self._recorder.wants_full(LOOP)
        gathered = self._gathered(delta, full=full)
        commands = decide(self._state, now)
        contents = checkpoints(self._state, commands.checkpoints, now)
        self.outcomes = await self._actor.carry_out(commands, contents)
        self.result = absorb(self._state, commands, self.outcomes, now)
        self._record(now, gathered, commands, full=full)
        self.last_tick = self._clock.now()

    async def _past(self) -> tuple[Sequence[CheckpointView], Sequence[History]]:
        """Return what is known of containers from before the start."""
        if self._history is not None:
            try:
                return (), await self._history()
            except (HistoryError, MetricsError) as error:
                self.history_error = str(error)
                return (), ()
        if not self._state.settings.uses_checkpoints:
            return (), ()
        listing = await self._cluster.list(VPA_CHECKPOINTS)
        return [checkpoint_view(one) for one in listing.items], ()

    def _gathered(self, delta: Delta, *, full: bool) -> bytes:
        """Return what was gathered as JSON, or everything; either is what the pass is decided from."""
        return encode_delta(dump(self._state) if full else delta)

    def _record(self, now: Instant, gathered: bytes, commands: Commands, *, full: bool) -> None:
        reasons, repeated = self._targets.of(commands, full=full)
        self._recorder.write(
            Record(
                loop=LOOP,
                tick=self._tick,
                now=now,
                full=full,
                state=msgspec.Raw(gathered),
                commands=msgspec.Raw(encode_commands(commands)),
                outcomes=msgspec.Raw(encode_outcomes(self.outcomes)),
                result=msgspec.Raw(encode_result(self.result)),
                reasons=reasons,
                repeated=repeated,
            )
        )
