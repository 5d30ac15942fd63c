"""The loops on a real cluster: wired, watched over, and told to the person who runs them.

What differs from a simulated run is only what stands at the ends of the ports, and the guard before
every write. The service itself decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from kubetide.explain.records import Recorder
from kubetide.horizontal.controller import HorizontalController
from kubetide.nodes.controller import NodesController
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.metrics import CustomMetricSource, ExternalMetricSource, MetricSource
from kubetide.runtime.config import RunConfig
from kubetide.runtime.guard import Guard, guarded_cloud, guarded_cluster
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.series import Heard, HorizontalSeries, NodesSeries
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, Instant, between, format_duration, seconds
from kubetide.watching import Caches, Key

_LOOK = seconds(5)
_PATIENCE = 10
"""A loop that has not ended a tick well for so many of its periods is not alive."""


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
        left_alone: Gives the HPAs that another controller works on.

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
        left_alone: Callable[[], Collection[Key]] = tuple,
    ) -> None:
        self._clock = clock
        self._warn = warn
        self._started: Instant | None = None
        self._controllers = config.run.controllers
        self._told: dict[str, str] = {}
        safe, board = guarded_cluster(cluster, guard), Board()
        self._caches = Caches(safe, clock)
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
                left_alone=left_alone,
                caches=self._caches,
            )
            heard.listen("horizontal", HorizontalSeries(registry, horizontal, clock).heard)
            self._loops.append(_Loop("horizontal", horizontal, settings.sync_period))
        if "nodes" in config.run.controllers:
            assert cloud is not None, "checked when the configuration was read"
            node_loop = NodesController(
                safe,
                guarded_cloud(cloud, guard),
                clock,
                heard,
                board,
                config.loops.nodes,
                seed=seed,
                caches=self._caches,
                before_tick=None if horizontal is None else horizontal.resting,
            )
            heard.listen("nodes", NodesSeries(registry, node_loop, clock).heard)
            self._loops.append(_Loop("nodes", node_loop, config.loops.nodes.scan_interval))

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
        """Says which caches have no first list yet; empty when all have.

        A run that waits for its turn is ready too: it does all that is asked of it, and a rollout goes on.
        """
        if self._started is None:
            return ""
        waiting = sorted({one.kind.resource for one in self._caches.all if not one.has_synced})
        return f"no first list yet of {', '.join(waiting)}" if waiting else ""

    def not_alive(self) -> str:
        """Says which loop has ended no tick for long; empty when all do, and while the run waits for its turn."""
        if self._started is None:
            return ""
        now = self._clock.now()
        for loop in self._loops:
            since = loop.controller.last_tick or self._started
            if between(since, now) > _PATIENCE * loop.period:
                return f"the {loop.name} loop has ended no tick for {format_duration(between(since, now))}"
        return ""

    async def _look_after(self) -> None:
        """Tells of what goes wrong, and of its end, once each."""
        while True:
            for informer in self._caches.all:
                what = informer.kind.resource
                error = with_hint(informer.last_error, self._controllers)
                text = f"cannot read {what}: {error}" if informer.failures else ""
                self._tell(f"cache of {what}", text, f"{what} can be read again")
            for loop in self._loops:
                if loop.failures != loop.failures_told:
                    loop.failures_told = loop.failures
                    failure = with_hint(loop.controller.last_failure.strip(), (loop.name,))
                    self._tell(f"loop {loop.name}", f"a tick of the {loop.name} loop failed: {failure}", "")
            await self._clock.sleep(_LOOK)

    def _tell(self, about: str, problem: str, end: str) -> None:
        if problem != self._told.get(about, ""):
            self._told[about] = problem
            self._warn(problem or end)
