"""A small cluster that lives: informers, the chosen controllers and kubelets, in virtual time."""

from __future__ import annotations

import asyncio
from functools import partial

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.controllers import (
    DaemonSetController,
    DeploymentController,
    DeviceCache,
    DisruptionController,
    PodIndex,
    ReplicaSetController,
    ResourceClaimController,
    Scheduler,
    TaintEvictionController,
    VolumeCache,
    VolumeController,
)
from kubetide.embedded.draws import Between
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PDBS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import ZERO, milliseconds, parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T00:00:00Z")
WHERE = {"namespace": "shop"}
_QUICK = PodTimes(
    pull=Between(ZERO, ZERO),
    start=Between(seconds(1), seconds(3)),
    ready=Between(seconds(1), seconds(3)),
    stop=Between(seconds(1), seconds(2)),
)


class Failing:
    """Requests that a test makes fail: ``hit(request)`` says which, as long as it says so."""

    def __init__(self, hit, error=None):
        self.hit = hit
        self.error = error or Unavailable("the server is currently unable to handle the request")
        self.hits = 0

    async def before(self, request):
        if self.hit(request):
            self.hits += 1
            raise self.error


class Lagging:
    """Reads a cluster late: what a list or a watch gives arrives ``lag`` seconds after it was so."""

    def __init__(self, cluster, clock, lag):
        self._cluster = cluster
        self._pause = lambda: clock.sleep(milliseconds(int(lag * 1000)))

    async def list(self, kind, **options):
        listing = await self._cluster.list(kind, **options)
        await self._pause()
        return listing

    async def watch(self, kind, **options):
        async for events in self._cluster.watch(kind, **options):
            await self._pause()
            yield events


class Live:
    """The cluster of one test; ``cluster`` is the test's own client, which never fails.

    With a ``lag`` (seconds) the cache of pods is behind by about so much.
    """

    def __init__(self, clock, faults, lag, writes_events, webhooks=None):
        self.clock = clock
        self.writes_events = writes_events
        self.cluster = EmbeddedCluster(Store(), clock, seed=5, webhooks=webhooks)
        self.theirs = self.cluster.client(faults=faults)
        kinds = (PODS, NODES, DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, PDBS)
        late = Lagging(self.cluster, clock, lag) if lag else self.cluster
        made = [Informer(late if kind is PODS else self.cluster, kind, clock) for kind in kinds]
        self.volumes = VolumeCache(self.cluster, clock)
        self.devices = DeviceCache(self.cluster, clock)
        self.informers = made
        self.pods, self.nodes, self.deployments, self.replica_sets, self.daemon_sets = made[:5]
        self.stateful_sets, self.pdbs = made[5:]

    def parts(self, names):
        """The coroutines of the named parts."""
        cluster, clock, pods = self.theirs, self.clock, self.pods
        index = PodIndex(pods)
        owned = {"pods": pods, "pod_index": index}
        makers = {
            "kubelets": partial(
                KubeletPool, self.cluster, clock, pods=pods, nodes=self.nodes, seed=5, times=_QUICK
            ),
            "scheduler": partial(
                Scheduler,
                cluster,
                clock,
                pods=pods,
                nodes=self.nodes,
                budgets=self.pdbs,
                volumes=self.volumes,
                devices=self.devices,
                writes_events=self.writes_events,
            ),
            "taints": partial(TaintEvictionController, cluster, clock, pods=pods, nodes=self.nodes),
            "claims": partial(ResourceClaimController, cluster, clock, devices=self.devices, pods=pods),
            "volumes": partial(
                VolumeController, cluster, clock, volumes=self.volumes, pods=pods, nodes=self.nodes
            ),
            "replica_sets": partial(
                ReplicaSetController,
                cluster,
                clock,
                5,
                replica_sets=self.replica_sets,
                writes_events=self.writes_events,
                **owned,
            ),
            "deployments": partial(
                DeploymentController,
                cluster,
                clock,
                deployments=self.deployments,
                replica_sets=self.replica_sets,
                **owned,
            ),
            "daemon_sets": partial(
                DaemonSetController,
                cluster,
                clock,
                5,
                daemon_sets=self.daemon_sets,
                nodes=self.nodes,
                writes_events=self.writes_events,
                **owned,
            ),
            "pdbs": partial(
                DisruptionController,
                cluster,
                clock,
                pdbs=self.pdbs,
                pods=pods,
                replica_sets=self.replica_sets,
                deployments=self.deployments,
                stateful_sets=self.stateful_sets,
            ),
        }
        self.running = {name: makers[name]() for name in names}
        return [part.run() for part in self.running.values()]

    async def add_nodes(self, *names, **size):
        for name in names:
            await self.cluster.create(NODES, builders.node(name, **size))

    async def add(self, kind, body):
        return await self.cluster.create(kind, body, namespace="shop")

    async def get(self, kind, name):
        return await self.cluster.get(kind, name, **WHERE)

    async def patch(self, kind, name, patch, **options):
        return await self.cluster.patch(kind, name, patch, **WHERE, **options)

    async def list(self, kind):
        namespace = "shop" if kind.namespaced else ""
        return list((await self.cluster.list(kind, namespace=namespace)).items)

    async def pods_now(self):
        return await self.list(PODS)

    async def sleep(self, seconds_):
        await self.clock.sleep(milliseconds(int(seconds_ * 1000)))


def play(body, *parts, faults=None, lag=0.0, writes_events=False, webhooks=None):
    """Run ``body(live)`` in a cluster where the parts of those names run; return what it returns."""

    async def main(clock):
        live = Live(clock, faults, lag, writes_events, webhooks)
        await live.cluster.create(NAMESPACES, builders.namespace("shop"))
        tasks = [asyncio.create_task(informer.run()) for informer in live.informers]
        for informer in live.informers:
            await informer.synced()
        tasks += [
            asyncio.create_task(part) for part in (live.volumes.run(), live.devices.run(), *live.parts(parts))
        ]
        if "volumes" in parts:
            live.volumes.start()
        if "claims" in parts:
            live.devices.start()
        try:
            return await body(live)
        finally:
            for task in tasks:
                assert not task.done(), task
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return run_virtual(main, start=START)


def names(pods):
    return sorted(pod.metadata.name for pod in pods)
