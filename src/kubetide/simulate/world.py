"""The world of a run: the embedded cluster, its load, and the loops that scale it.

The same loops, the same clients of the same ports as in production; only the ends of the ports are
embedded. A run goes through three stretches: the cluster comes up and settles (``warmUp`` of the
scenario), the load begins and the loops with it, and at the end everything is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from kubetide.embedded.apiserver.admission import Caller
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud
from kubetide.embedded.kubelet import KubeletPool
from kubetide.embedded.load import (
    EmbeddedCustomMetrics,
    EmbeddedExternalMetrics,
    EmbeddedMetrics,
    ServiceLoad,
)
from kubetide.explain.records import Recorder
from kubetide.loop import Parts, Sources, loop_entries, parse_flags
from kubetide.loop.wiring import wire
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.objects.base import Json
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    VALIDATING_WEBHOOKS,
    Kind,
)
from kubetide.objects.minor_version import minor_of
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.errors import AlreadyExists, ApiError
from kubetide.simulate.control_plane import ControlPlane
from kubetide.simulate.faults import ApiFaults, run_node_failures, run_watch_expiries
from kubetide.simulate.outcome.checkers import Checkers, unsettled
from kubetide.simulate.outcome.observe import Observer
from kubetide.simulate.outcome.timeline import Timeline
from kubetide.simulate.persisted import PersistedRun
from kubetide.simulate.rollouts import run_rollouts
from kubetide.simulate.scenarios.build import (
    Places,
    cloud_faults_of,
    external_series_of,
    manifests_of,
    pod_times_of,
    services_of,
)
from kubetide.simulate.scenarios.custom_kinds import definitions_for, stored_kinds
from kubetide.simulate.scenarios.machines import catalogue_of, creatable_of, groups_of
from kubetide.simulate.scenarios.notices import notices_of, of_servers
from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError, start_of
from kubetide.simulate.webhooks import OwnWebhooks
from kubetide.units.time import ZERO, Duration, Instant, parse_duration, seconds
from kubetide.watching import Caches

_WEBHOOKS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_HISTORY = 1_000
"""How many changes of a kind a run holds into which nobody looks: readers in the process do not fall behind."""
_LEASE_RENEWAL = seconds(10)
"""As a kubelet renews its node's lease."""


class World:
    """All parts of one run. Create it inside the event loop that runs it.

    Args:
        scenario: What to run; ``base`` is the folder that its files lie beside.
        clock: Its time at the beginning is that of the warm-up.
        end: When the run ends.
        seed: What everything random is drawn from.
        recorder: Takes the decision records.
        on_sample: Called after each sampling step.
        persisted: Where the state is persisted, and comes from.
        webhooks: Calls admission webhooks; None where nothing outside of the run can be called.
        served: Whether others look into the cluster: then it has what only people and clients read, the
            events of each pod and the leases of nodes.

    Raises: ScenarioError, FlagError, TraceError for what the scenario states wrongly.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        *,
        base: Path,
        end: Instant,
        seed: int,
        recorder: Recorder,
        on_sample: Callable[[Timeline], None] | None = None,
        persisted: PersistedRun | None = None,
        webhooks: Caller | None = None,
        served: bool = False,
    ) -> None:
        self.scenario, self.clock, self.recorder = scenario, clock, recorder
        self.start = max(start_of(scenario), clock.now())
        self.end, self.persisted, self._served = end, persisted, served
        if persisted is not None:
            seed = persisted.seed_of(seed)
        self.seed = seed
        self.kubelets: KubeletPool | None = None
        entries = loop_entries(scenario.loops)
        simulated = {name: value for entry in entries for name, value in entry.simulated_flags.items()}
        settings = self.settings = parse_flags({**simulated, **scenario.flags}, entries)
        skipped, dump = list[str](), list[str]()
        self._places: Places = {}
        self._manifests = manifests_of(scenario, base, skipped=skipped, notices=dump, places=self._places)
        services = services_of(scenario, self._manifests, base, seed, end)
        notices = (*dump, *notices_of(self._manifests, skipped, calls_webhooks=webhooks is not None))
        if webhooks is None:
            if "scaledobjects" in scenario.loops:
                notices = (*notices, *of_servers(self._manifests))
            self._manifests = [one for one in self._manifests if one[0] not in _WEBHOOKS]
        self._definitions = definitions_for(scenario.loops, self._manifests, settings)
        own = OwnWebhooks(webhooks)
        kinds = stored_kinds(scenario.loops, self._manifests)
        store = Store(kinds) if served else Store(kinds, history=_HISTORY)
        if persisted is not None:
            persisted.attach(store, clock)
        # Everyone here makes a body for one request and leaves it alone afterwards.
        self.cluster = EmbeddedCluster(store, clock, seed, webhooks=own).client(gives_bodies=True)
        # The loops' own way to the API server, which may fail while the rest of the world goes on.
        self.api_faults = ApiFaults.of(scenario, clock, seed, may_change=served)
        loops_cluster = self.cluster.client(faults=self.api_faults, gives_bodies=True)
        minor = minor_of(settings.kubernetes_version or "")
        plane = self._plane = ControlPlane(
            self.cluster, clock, seed=seed, store=store, writes_events=served, minor=minor
        )
        self.pods, self.nodes, self.deployments = plane.pods, plane.nodes, plane.deployments
        self.cloud = self._embedded_cloud()
        self.load = ServiceLoad(
            services,
            clock=clock,
            pods=self.pods,
            nodes=self.nodes,
            start=self.start,
            step=parse_duration(scenario.step),
        )
        self.metrics = EmbeddedMetrics(self.load, clock)
        self.custom_metrics = EmbeddedCustomMetrics(self.load, clock)
        self.external_metrics = EmbeddedExternalMetrics(
            external_series_of(scenario, base, seed, end), clock, start=self.start, step=self.load.step
        )
        self.checkers = self._invariants()
        self.cloud.on_change(self.checkers.groups_changed)
        self.observer = self._observing(on_sample)
        self.timeline.notices = notices
        self._caches = Caches(loops_cluster, clock)
        parts = self.parts = Parts(
            cluster=loops_cluster,
            clock=clock,
            recorder=recorder,
            caches=self._caches,
            board=Board(),
            sources=Sources(self.metrics, self.custom_metrics, self.external_metrics),
            cloud=self.cloud,
            seed=seed,
            answers=own,
        )
        self.loops = wire(entries, parts, settings)

    def _embedded_cloud(self) -> EmbeddedCloud:
        scenario, persisted = self.scenario, self.persisted
        return EmbeddedCloud(
            self.cluster,
            self.clock,
            seed=self.seed,
            groups=groups_of(scenario),
            creatable=creatable_of(scenario),
            catalogue=catalogue_of(scenario),
            faults=cloud_faults_of(scenario),
            keep=None if persisted is None else persisted.keep_machines,
            stored=None if persisted is None else persisted.machines,
        )

    def _invariants(self) -> Checkers:
        return Checkers(
            clock=self.clock,
            pods=self.pods,
            nodes=self.nodes,
            deployments=self.deployments,
            pdbs=self._plane.pdbs,
            expendable_below=self.settings.of(NodesSettings).expendable_pods_priority_cutoff,
        )

    def _observing(self, on_sample: Callable[[Timeline], None] | None) -> Observer:
        return Observer(
            start=self.start,
            clock=self.clock,
            load=self.load,
            cloud=self.cloud,
            groups=[group.name for group in self.scenario.node_groups],
            pods=self.pods,
            nodes=self.nodes,
            deployments=self.deployments,
            on_sample=on_sample,
        )

    @property
    def timeline(self) -> Timeline:
        """The timeline so far."""
        return self.observer.timeline

    def violations(self) -> list[str]:
        """Violated invariants and ticks that ended with a bug, one sentence each."""
        found = list(self.checkers.violations)
        for entry, loop, _ in self.loops:
            if loop.health.bugs:
                found.append(
                    f"the {entry.name} loop failed in {loop.health.bugs} ticks, "
                    f"the last time with: {loop.health.last_failure}"
                )
        return found

    def unsettled(self) -> list[str]:
        """Return what has not settled, one sentence each."""
        return unsettled(
            pods=self.pods.objects, deployments=self.deployments.objects, nodes=self.nodes.objects.values()
        )

    async def run(self) -> None:
        """Run from warm-up to the end."""
        if self.persisted is None or self.persisted.is_new:
            await self._create_objects()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(informer.run()) for informer in self._plane.informers]
            for informer in self._plane.informers:
                await informer.synced()
            await self.cloud.start()
            if self.persisted is not None:
                self.persisted.note_begun()
            tasks += [group.create_task(part) for part in self._cluster_parts()]
            await self._sleep_until(self.start)
            self.observer.begin()
            tasks += [group.create_task(part) for part in self._scaling_parts()]
            await self._sleep_until(self.end)
            self.load.advance(self.clock.now())
            if self.persisted is not None:
                # The sampling step that is due now may not have come: a start with this end has nothing to play.
                self.persisted.mark_time()
            for task in reversed(tasks):
                task.cancel()

    async def close(self) -> None:
        """Close what the loops hold, as a process does at its end; a state that is read afterwards has no status object."""
        for one in self.loops:
            await one.loop.close()

    def _cluster_parts(self) -> list[Coroutine[Any, Any, None]]:
        clock, seed = self.clock, self.seed
        self.kubelets = kubelets = KubeletPool(
            self.cluster,
            clock,
            seed=seed,
            times=pod_times_of(self.scenario),
            pods=self.pods,
            nodes=self.nodes,
            lease_renewal=_LEASE_RENEWAL if self._served else ZERO,
            reports_resources=self._served,
        )
        self.load.on_oom(kubelets.oom_kill)
        return [
            self.cloud.run(),
            kubelets.run(),
            run_node_failures(self.scenario, clock, seed=seed, nodes=self.nodes, kubelets=kubelets),
            *self._plane.controllers(self.scenario.scheduler),
        ]

    def _scaling_parts(self) -> list[Coroutine[Any, Any, None]]:
        return [
            self._sample(),
            self._caches.run(),
            *(one.runner.run() for one in self.loops),
            run_watch_expiries(self.scenario, self.cluster, self.clock),
            run_rollouts(self.scenario, self.cluster, self.clock),
        ]

    async def _sample(self) -> None:
        """Work the load out step by step, also where nobody asks for it."""
        while True:
            await self._sleep_until(Instant(self.load.done_until + self.load.step))
            self.load.advance(self.clock.now())
            if self.persisted is not None:
                self.persisted.mark_time()

    async def _sleep_until(self, due: Instant) -> None:
        await self.clock.sleep(Duration(due - self.clock.now()))

    async def _create_objects(self) -> None:
        for namespace in sorted(
            {json["metadata"].get("namespace") or "default" for _, json in self._manifests}
        ):
            try:
                await self.cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
            except AlreadyExists:
                continue
        for definition in self._definitions:
            await self._create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        # A pod of a class that is not there yet is refused, and in a file the class may stand below it.
        for kind, json in sorted(self._manifests, key=lambda one: one[0] is not PRIORITY_CLASSES):
            await self._create(kind, json)

    async def _create(self, kind: Kind[Any], json: Json) -> None:
        meta = json["metadata"]
        namespace = (meta.get("namespace") or "default") if kind.namespaced else ""
        try:
            await self.cluster.create(kind, json, namespace=namespace)
            if kind is RESOURCE_QUOTAS:
                # No controller here counts what a quota limits: its status is as given.
                status = json.get("status") or {"hard": (json.get("spec") or {}).get("hard")}
                await self.cluster.patch(
                    kind, meta["name"], {"status": status}, namespace=namespace, subresource="status"
                )
        except AlreadyExists:
            return
        except ApiError as error:
            place = self._places.get((kind.kind, namespace or "default", meta.get("name") or ""), "manifests")
            raise ScenarioError(f"{place}: {kind.kind} {namespace}/{meta.get('name')}: {error}") from error
