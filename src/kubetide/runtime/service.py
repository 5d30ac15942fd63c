"""The loops on a real cluster: wired, watched over, and told to the person who runs them.

What differs from a simulated run is only what stands at the ends of the ports, and the guard before
every write. The service itself decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from kubetide.explain.records import Recorder
from kubetide.horizontal.controller import HorizontalController, Owners
from kubetide.nodes.controller import NodesController
from kubetide.objects.kinds import DEVICE_KINDS, VOLUME_KINDS
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.metrics import CustomMetricSource, ExternalMetricSource, MetricSource
from kubetide.runtime.clocks import AGREED, SkewReport
from kubetide.runtime.config import RunConfig
from kubetide.runtime.failing_sources import failing_sources
from kubetide.runtime.guard import Guard, guarded_cloud, guarded_cluster
from kubetide.runtime.health import Activity, Patience, health_check, not_alive
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.series import (
    Heard,
    HorizontalSeries,
    NodesSeries,
    show_caches,
    show_holds,
    show_not_understood,
    show_skew,
    show_sources,
)
from kubetide.units.exposition import Registry
from kubetide.units.time import (
    ZERO,
    Duration,
    Instant,
    before,
    minutes,
    seconds,
)
from kubetide.watching import Caches, Informer

_LOOK = seconds(5)
_UNREAD = minutes(1)
"""Caches that cannot be read for so long make the process not ready."""


class Sources(NamedTuple):
    """Where metrics come from; custom and external ones may be missing."""

    resource: MetricSource
    custom: CustomMetricSource | None = None
    external: ExternalMetricSource | None = None


@dataclass
class _Loop:
    name: str
    controller: HorizontalController | NodesController
    period: Duration
    failures_told: int = 0

    @property
    def failures(self) -> int:
        """Ticks that ended with an error."""
        controller = self.controller
        return controller.failures if isinstance(controller, NodesController) else controller.bugs

    def holds(self) -> tuple[str, ...]:
        """Why its last tick took nothing away."""
        return self.controller.state.holds

    def activity(self, clock: Clock) -> Activity:
        """What it was last seen to do."""
        controller = self.controller
        *_, failure = controller.last_failure.strip().splitlines() or [""]
        return Activity(
            loop=self.name,
            period=self.period,
            began=before(clock.now(), Duration(clock.monotonic() - controller.began)),
            well=controller.last_tick,
            excused=controller.last_excused if isinstance(controller, NodesController) else None,
            failure=failure,
        )


class Service:
    """The loops that a configuration names, on one cluster.

    Args:
        config: What runs, and with which flags.
        cluster: Read as it is; written through the guard.
        sources: Metrics, for the horizontal loop.
        cloud: Node groups, for the node loop; None where that does not run.
        guard: Says whether anything may be changed now.
        recorder: Takes the decision records.
        registry: Takes the series of the loops.
        warn: Takes a sentence that a person must see.
        seed: What picks among equals are drawn from.
        owners: Which HPAs other controllers serve; None where nobody is asked.
        ahead: Gives how far our clock is ahead of the API server's; negative where it is behind.

    Must be made inside the event loop that runs it.
    """

    def __init__(
        self,
        config: RunConfig,
        cluster: Cluster,
        clock: Clock,
        *,
        sources: Sources,
        cloud: Cloud | None,
        guard: Guard,
        recorder: Recorder,
        registry: Registry,
        warn: Callable[[str], None],
        seed: int,
        owners: Owners | None = None,
        ahead: Callable[[], Duration] = lambda: ZERO,
    ) -> None:
        self._ahead, self._skew = ahead, SkewReport()
        show_skew(registry, ahead)
        self._clock = clock
        self._warn = warn
        self._started: Instant | None = None
        self._unread: Instant | None = None
        """When some cache was last found to be unreadable."""
        self._patience = Patience(
            config.run.max_inactivity, config.run.max_failing_time, config.run.max_startup_time
        )
        self._controllers = config.run.controllers
        self._told: dict[str, str] = {}
        safe, board = guarded_cluster(cluster, guard), Board()
        self._caches = Caches(safe, clock)
        show_caches(registry, self._caches, clock)
        heard = Heard(recorder, warn)
        self._loops: list[_Loop] = []
        horizontal: HorizontalController | None = None
        if "horizontal" in config.run.controllers:
            settings = config.loops.horizontal
            horizontal = HorizontalController(
                safe,
                sources.resource,
                clock,
                heard,
                board,
                settings,
                custom=sources.custom,
                external=sources.external,
                owners=owners,
                advises=not config.run.act,
                caches=self._caches,
            )
            heard.listen("horizontal", HorizontalSeries(registry, horizontal, clock).heard)
            show_sources(registry, horizontal)
            self._loops.append(_Loop("horizontal", horizontal, settings.sync_period))
        if "nodes" in config.run.controllers:
            assert cloud is not None, "checked when the configuration was read"
            node_loop = NodesController(
                safe,
                guarded_cloud(cloud, guard),
                clock,
                heard,
                board,
                msgspec.structs.replace(config.loops.nodes, advises=not config.run.act),
                seed=seed,
                caches=self._caches,
                before_tick=None if horizontal is None else horizontal.resting,
            )
            per_group = config.run.emit_per_nodegroup_metrics
            heard.listen("nodes", NodesSeries(registry, node_loop, clock, per_group=per_group).heard)
            show_not_understood(registry, lambda: node_loop.not_understood)
            self._loops.append(_Loop("nodes", node_loop, config.loops.nodes.scan_interval))

        show_holds(registry, [(loop.name, loop.holds) for loop in self._loops])

    def begin(self) -> None:
        """Says that the run's turn has come: from now on it is asked whether it is ready and alive."""
        self._started = self._started or self._clock.now()

    async def run(self) -> None:
        """Runs the loops until cancelled."""
        self.begin()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._caches.run())
                for loop in self._loops:
                    tasks.create_task(loop.controller.run())
                tasks.create_task(self._look_after())
        finally:
            for loop in self._loops:
                if isinstance(loop.controller, NodesController):
                    await loop.controller.close()

    def not_ready(self) -> str:
        """Says which caches have no first list yet, or cannot be read for a minute; empty when all are well.

        A run that waits for its turn is ready too: it does all that is asked of it, and a rollout goes on.
        """
        if self._started is None:
            return ""
        waiting = sorted({one.kind.resource for one in self._needed() if not one.has_synced})
        if waiting:
            return f"no first list yet of {', '.join(waiting)}"
        old = before(self._clock.now(), _UNREAD)
        failing = [one for one in self._needed() if one.failures and (one.last_heard or old) <= old]
        return f"cannot read {failing[0].kind.resource}: {failing[0].last_error}" if failing else ""

    def _needed(self) -> list[Informer[Any]]:
        """Gives the caches that the loops cannot do without: those of volumes and devices may be refused."""
        return [
            one
            for one in self._caches.all
            if one.has_synced or not one.failures or one.kind not in (*VOLUME_KINDS, *DEVICE_KINDS)
        ]

    def not_alive(self) -> str:
        """Says which loop a restart may help; empty for none, and while the run waits for its turn."""
        if self._started is None:
            return ""
        since = max(self._started, self._unread or self._started)
        return not_alive(self._activities(), self._clock.now(), since=since, patience=self._patience)

    def health_check(self) -> str:
        """Says in Cluster Autoscaler's words which loop does not get its work done; empty as above."""
        if self._started is None:
            return ""
        return health_check(
            self._activities(), self._clock.now(), since=self._started, patience=self._patience
        )

    def _activities(self) -> list[Activity]:
        return [loop.activity(self._clock) for loop in self._loops]

    async def _look_after(self) -> None:
        """Tells of what goes wrong, and of its end, once each."""
        while True:
            if any(informer.failures for informer in self._needed()):
                self._unread = self._clock.now()
            for informer in self._caches.all:
                what = informer.kind.resource
                error = with_hint(informer.last_error, self._controllers)
                text = f"cannot read {what}: {error}" if informer.failures else ""
                self._tell(f"cache of {what}", text, f"{what} can be read again")
            self._tell_of_refused_metrics()
            self._tell("clock", self._skew.sentence(self._ahead()), AGREED)
            for loop in self._loops:
                if loop.failures != loop.failures_told:
                    loop.failures_told = loop.failures
                    failure = with_hint(loop.controller.last_failure.strip(), (loop.name,))
                    self._tell(f"loop {loop.name}", f"a tick of the {loop.name} loop failed: {failure}", "")
            await self._clock.sleep(_LOOK)

    def _tell_of_refused_metrics(self) -> None:
        """Say once which metric source answers nothing, and of each right that one lacks, which role would give it."""
        for loop in self._loops:
            controller = loop.controller
            sources = controller.sources if isinstance(controller, HorizontalController) else ()
            for name, problem in failing_sources(sources, self._clock.now()).items():
                self._tell(f"metrics {name}", problem, f"{name} can be read again")
            for source in sources:
                told = with_hint(source.last_error, (loop.name,))
                hint = told.removeprefix(source.last_error)
                if hint and f"{source.name}{hint}" not in self._told:
                    self._tell(f"{source.name}{hint}", f"cannot read {source.name}: {told}", "")

    def _tell(self, about: str, problem: str, end: str) -> None:
        if problem != self._told.get(about, ""):
            self._told[about] = problem
            self._warn(problem or end)
