"""The loops on a real cluster: wired, monitored, and reported to their operator.

What differs from a simulated run is only what stands at the ends of the ports, and the guard before
every write. The service itself decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from kubetide.explain.records import Recorder
from kubetide.horizontal.controller import HorizontalController
from kubetide.loop import HttpReply, Loop, LoopEntry, Owners, Parts, Sources, loop_entries
from kubetide.loop.wiring import RunningLoop, wire
from kubetide.nodes.controller import NodesController
from kubetide.nodes.explain.debugging_snapshot import debugging_snapshot, failed_snapshot
from kubetide.nodes.reasons import NO_GROUPS
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.runtime.configuration.config import RunConfig
from kubetide.runtime.expanders import connected_expander
from kubetide.runtime.failing_sources import failing_sources
from kubetide.runtime.failing_ticks import FailingTicks
from kubetide.runtime.guard import Guard, guarded_cloud, guarded_cluster
from kubetide.runtime.health import Activity, Patience, health_check, not_alive
from kubetide.runtime.loop_figures import HealthRecorder
from kubetide.runtime.needed_kinds import consequence, is_needed
from kubetide.runtime.permissions import missing_right, with_hint
from kubetide.runtime.series import ListeningRecorder, show_caches, show_holds, show_loops, show_skew
from kubetide.runtime.timing.clocks import AGREED, SkewReport
from kubetide.runtime.undecided_hpas import UndecidedHpas
from kubetide.runtime.unread_caches import UnreadCaches
from kubetide.units.exposition import Registry
from kubetide.units.time import (
    ZERO,
    Duration,
    Instant,
    before,
    between,
    minutes,
    seconds,
    to_seconds,
)
from kubetide.watching import Caches, Informer

_LOOK = seconds(5)
_LAST_TICK = seconds(3)
"""So long a tick that is under way may go on once the process is asked to end."""
_FAREWELL = seconds(5)
"""So long a loop has for its last writes, so that the whole end fits into a grace period of 30 s."""
_REFUSED_AGAIN = minutes(60)
_UNREAD = minutes(1)
"""Caches that cannot be read for so long make the process not ready."""


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
        requests: Returns how many requests were sent to API servers; None where nobody counts.
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
        requests: Callable[[], int] | None = None,
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
        self._refused: dict[str, Instant] = {}
        """When each right that the account lacks was last asked for."""
        self._unread_caches = UnreadCaches()
        self._unread_objects: set[str] = set()
        self._undecided_hpas = UndecidedHpas()
        safe = guarded_cluster(cluster, guard, refused=self._tell_of_refusal)
        self._caches = Caches(safe, clock)
        show_caches(registry, self._caches, clock)
        listening = ListeningRecorder(recorder, warn)
        observing = HealthRecorder(listening, clock, requests, self._needed)
        parts = Parts(
            cluster=safe,
            clock=clock,
            recorder=observing,
            caches=self._caches,
            board=Board(),
            sources=sources,
            cloud=None if cloud is None else guarded_cloud(cloud, guard),
            seed=seed,
            owners=owners,
            advises=not config.run.act,
            warn=warn,
            offload=asyncio.to_thread,
            expander=connected_expander(config.loops.of(NodesSettings)),
        )
        self._entries = tuple(loop_entries(config.run.controllers))
        self._settings = config.loops
        self._loops = wire(self._entries, parts, config.loops)
        self._running: list[RunningLoop] = []
        observing.observe(self._loops)
        self._failing_ticks = {entry.name: FailingTicks(entry.name) for entry, _, _ in self._loops}
        self._listening, self._registry = listening, registry
        show_holds(registry, self._loops)
        for name, listener in show_loops(registry, self._loops).items():
            listening.listen(name, listener)

    def begin(self) -> None:
        """Start the run: from now on the probes report whether it is ready and alive, and the series of the loops are there.

        As upstream's programs, a replica that waits for its turn has none: each sum over replicas, and each alert on a
        gauge that is 0, would count what it has not looked at.
        """
        if self._started is not None:
            return
        self._started = self._clock.now()
        self._show_series(one for one in self._loops if one not in self._running)

    def _show_series(self, loops: Iterable[RunningLoop]) -> None:
        for entry, loop, _ in loops:
            if entry.series is not None:
                self._listening.listen(entry.name, entry.series(self._registry, loop, self._clock))

    async def run(self, until_leading: Callable[[], Awaitable[None]] | None = None) -> None:
        """Run the loops until cancelled.

        Args:
            until_leading: Returns once this process may act. Until then only loops run that answer others meanwhile.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                if until_leading is not None:
                    standing_by = [one for one in self._loops if self._stands_by(one.entry)]
                    self._show_series(standing_by)
                    self._start(standing_by, tasks)
                    await until_leading()
                self.begin()
                self._start([one for one in self._loops if one not in self._running], tasks)
                tasks.create_task(self._look_after())
                await self._until_cancelled()
        finally:
            # An API server that says nothing must not hold the end up: a lease is still to be let go of.
            for one in self._running:
                with suppress(TimeoutError):
                    async with asyncio.timeout(to_seconds(_FAREWELL)):
                        await one.loop.close()

    def _stands_by(self, entry: LoopEntry[Any]) -> bool:
        return entry.stands_by(self._settings.by_name[entry.name])

    def _start(self, loops: Sequence[RunningLoop], tasks: asyncio.TaskGroup) -> None:
        """Start loops, and with the first ones the caches."""
        if loops and not self._running:
            tasks.create_task(self._caches.run())
        for one in loops:
            tasks.create_task(one.runner.run())
        self._running += loops

    async def _until_cancelled(self) -> None:
        """Return never; let ticks that are under way then come to their end, as what they have written is recorded last."""
        try:
            await asyncio.Event().wait()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(to_seconds(_LAST_TICK)):
                    await asyncio.gather(*(one.runner.finish() for one in self._running))

    def not_ready(self) -> str:
        """Return which caches have not synced, or cannot be read for a minute; empty if all are well.

        A run that waits for its turn is ready too, once it answers what it answers meanwhile: it does all that is asked of it,
        and a rollout goes on.
        """
        if self._started is None:
            silent = [one.entry.name for one in self._running if one.loop.health.last_tick is None]
            return f"{', '.join(silent)}: nothing is answered yet" if silent else ""
        waiting = sorted({one.kind.resource for one in self._needed() if not one.has_synced})
        if waiting:
            return f"no first list yet of {', '.join(waiting)}"
        old = before(self._clock.now(), _UNREAD)
        failing = [one for one in self._needed() if one.failures and (one.last_received or old) <= old]
        return f"cannot read {failing[0].kind.resource}: {failing[0].last_error}" if failing else ""

    def _needed(self) -> list[Informer[Any]]:
        """Return the caches that the loops cannot do without: those of volumes and devices may be refused."""
        return [one for one in self._caches.all if not one.refused or is_needed(one.kind, self._entries)]

    def _why_unread(self, cache: Informer[Any]) -> str:
        """Return why a cache cannot be read now, and what a refusal means for the loops; empty if it can."""
        if not cache.failures:
            return ""
        why = with_hint(cache.last_error, self._controllers)
        if not cache.refused:
            return why
        is_served = bool(missing_right(cache.last_error))
        said = consequence(cache.kind, self._entries, is_served=is_served, has_been_read=cache.has_synced)
        return f"{why}; {said}" if said else why

    def not_alive(self) -> str:
        """Return the loop that a restart may help; empty for none, and while the run waits for its lease."""
        if self._started is None:
            return ""
        since = max(self._started, self._unread or self._started)
        return not_alive(self._activities(), self._clock.now(), since=since, patience=self._patience)

    def health_check(self) -> str:
        """Return Cluster Autoscaler's text for a loop that makes no progress; empty as above."""
        if self._started is None:
            return ""
        return health_check(
            self._activities(), self._clock.now(), since=self._started, patience=self._patience
        )

    def snapshot(self) -> tuple[bool, bytes]:
        """Return the input of the node loop's last tick as JSON, and whether it could be read."""
        now = self._clock.now()
        nodes = self._node_loop()
        if nodes is None:
            return False, failed_snapshot("this process runs no node loop", now)
        if nodes.deciding or nodes.state.tick is None:
            return False, failed_snapshot("no tick has come to its end yet: ask again", now)
        return True, debugging_snapshot(nodes.state, now)

    def posts(self) -> dict[str, Callable[[bytes], HttpReply]]:
        """Return what the loops answer to a POST, by path."""
        return {
            path: partial(answer, one.loop) for one in self._loops for path, answer in one.entry.posts.items()
        }

    def _node_loop(self) -> NodesController | None:
        return next((one.loop for one in self._loops if isinstance(one.loop, NodesController)), None)

    def _activities(self) -> list[Activity]:
        return [activity_of(one.loop, self._clock) for one in self._loops]

    async def _look_after(self) -> None:
        """Report what goes wrong, and its end, once each."""
        while True:
            if any(informer.failures for informer in self._needed()):
                self._unread = self._clock.now()
            errors = [(one.kind.resource, self._why_unread(one)) for one in self._caches.all]
            for sentence in self._unread_caches.sentences(errors):
                self._warn(sentence)
            self._tell_of_unread_objects()
            self._tell_of_refused_metrics()
            self._tell_of_undecided_hpas()
            self._tell_of_missing_groups()
            if (nodes := self._node_loop()) is not None:
                for name, problem in nodes.config_map_problems.items():
                    self._tell(
                        f"ConfigMap {name}", problem, f"ConfigMap {name} can be read and written again"
                    )
            self._tell("clock", self._skew.sentence(self._ahead()), AGREED)
            for entry, loop, _ in self._loops:
                failure = with_hint(loop.health.last_failure.strip(), (entry.name,))
                if said := self._failing_ticks[entry.name].sentence(loop.health, failure, self._clock.now()):
                    self._warn(said)
            await self._clock.sleep(_LOOK)

    def _tell_of_unread_objects(self) -> None:
        """Say once of each object why it cannot be read, and once that it can be again or is gone."""
        problems = {
            f"{informer.kind.kind} {'/'.join(filter(None, key))}": one.problem
            for informer in self._caches.all
            for key, one in informer.unread.items()
        }
        for name in self._unread_objects - problems.keys():
            self._tell(f"object {name}", "", f"{name} can be read again, or is gone")
        for name, problem in problems.items():
            said = f"{name} cannot be read: {problem}; mend the field"
            self._tell(
                f"object {name}", f"{said}: until then what was last read of it holds, if anything was", ""
            )
        self._unread_objects = set(problems)

    def _tell_of_refused_metrics(self) -> None:
        """Say once which metric source answers nothing, and of each right that one lacks, which role would give it."""
        for entry, loop, _ in self._loops:
            for name, problem in failing_sources(loop.sources, self._clock.now()).items():
                self._tell(f"metrics {name}", problem, f"{name} can be read again")
            for source in loop.sources:
                problem = with_hint(source.last_error, (entry.name,))
                hint = problem.removeprefix(source.last_error)
                if hint and f"{source.name}{hint}" not in self._told:
                    self._tell(f"{source.name}{hint}", f"cannot read {source.name}: {problem}", "")

    def _tell_of_undecided_hpas(self) -> None:
        """Say once of each HPA that nothing is decided about it, while the metric sources answer: these have lines of their own."""
        for _, loop, _ in self._loops:
            answering = all(source.failing_since is None for source in loop.sources)
            if isinstance(loop, HorizontalController) and answering:
                for sentence in self._undecided_hpas.sentences(loop.undecided, self._clock.now()):
                    self._warn(sentence)

    def _tell_of_missing_groups(self) -> None:
        """Say once that the cloud has no node groups: a wrong tag or name looks like a cluster that needs nothing."""
        nodes = self._node_loop()
        if nodes is not None and not nodes.deciding and nodes.state.tick is not None:
            state = nodes.state
            expects_none = state.settings.node_autoprovisioning_enabled
            problem = "" if state.groups or expects_none else f"{NO_GROUPS}; no node comes or goes until then"
            self._tell("node groups", problem, "there are node groups now")

    def _tell_of_refusal(self, message: str) -> None:
        """Say of each right that the account lacks what was refused for want of it: once, until nothing was for an hour."""
        right, now = missing_right(message), self._clock.now()
        if not right:
            return
        refused = self._refused.get(right)
        self._refused[right] = now
        if refused is None or between(refused, now) > _REFUSED_AGAIN:
            self._warn(f"a request was refused: {with_hint(message, self._controllers)}")

    def _tell(self, about: str, problem: str, end: str) -> None:
        if problem != self._told.get(about, ""):
            self._told[about] = problem
            self._warn(problem or end)


def activity_of(loop: Loop, clock: Clock) -> Activity:
    """Return the last observed activity of a loop."""
    health = loop.health
    *_, failure = health.last_failure.strip().splitlines() or [""]
    return Activity(
        loop=loop.name,
        period=loop.period,
        began=before(clock.now(), Duration(clock.monotonic() - health.began)),
        well=health.last_tick,
        excused=health.last_excused,
        failure=failure,
    )
