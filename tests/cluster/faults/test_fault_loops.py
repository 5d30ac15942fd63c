"""Both loops, as ``kubetide run`` wires them, through an API server that misbehaves."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import numpy as np
import pytest
from tests.cluster.answering import Skewed
from tests.cluster.faults import kinds as faults
from tests.cluster.faults.proxy import proxied
from tests.cluster.faults.test_fault_reads import READ_FAULTS, until
from tests.cluster.served import served
from tests.horizontal.running import Usage
from tests.nodes.live import SMALL
from tests.runtime.series.reading import read

from kubetide.cluster import HttpCluster
from kubetide.cluster.limits import Limits
from kubetide.embedded.cloud import EmbeddedCloud
from kubetide.embedded.controllers.scheduling.scheduler import Scheduler
from kubetide.embedded.controllers.workloads.deployment import DeploymentController
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex
from kubetide.embedded.controllers.workloads.replicaset import ReplicaSetController
from kubetide.embedded.kubelet.pool import KubeletPool
from kubetide.loop import Sources
from kubetide.nodes.facts.slim_pods import slim_pod
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, NODES, PDBS, PODS, REPLICA_SETS
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.service import Service
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced
from kubetide.testing import builders
from kubetide.units.exposition import Registry
from kubetide.units.time import minutes, seconds, to_seconds
from kubetide.watching import Informer

SPEED = 30
LIMITS = Limits(deadline=seconds(20), stall=seconds(20))
FLAGS = {
    "controllers": "horizontal,nodes",
    "cloud-provider": "embedded",
    "horizontal-pod-autoscaler-sync-period": "5s",
    "scan-interval": "5s",
}


class Switch:
    """A guard that a test can switch to refuse."""

    why = ""

    def refusal(self):
        return self.why


class Forgetting:
    """A recorder whose records nobody reads."""

    def wants_full(self, loop):
        return False

    def write(self, record):
        pass


def version_of(item):
    return item.metadata.resource_version


class World:
    """A living cluster, and a service that sees it through the proxy."""

    def __init__(self, cluster, proxy, client, clock, flags, shown):
        self.cluster, self.proxy, self.clock = cluster, proxy, clock
        self.guard, self.said, self.registry = Switch(), [], Registry()
        self.usage = Usage(cluster, clock, 750)
        self.cloud = EmbeddedCloud(cluster, clock, seed=1, groups=(SMALL,))
        self.service = Service(
            make_config([("--", {**FLAGS, **flags})]),
            client,
            shown,
            sources=Sources(self.usage),
            cloud=self.cloud,
            guard=self.guard,
            recorder=Forgetting(),
            registry=self.registry,
            warn=self.said.append,
            seed=1,
            ahead=lambda: client.skew.ahead,
        )
        self.loops = {one.entry.name: one.loop for one in self.service._loops}

    def parts(self):
        """The parts that make the cluster live, at the server itself."""
        informers = {
            kind.plural: Informer(self.cluster, kind, self.clock)
            for kind in (PODS, NODES, DEPLOYMENTS, REPLICA_SETS, PDBS)
        }
        pods, nodes, sets = informers["pods"], informers["nodes"], informers["replicasets"]
        index = PodIndex(pods)
        yield from (informer.run() for informer in informers.values())
        yield self.cloud.run()
        yield KubeletPool(self.cluster, self.clock, pods=pods, nodes=nodes, seed=1).run()
        yield Scheduler(self.cluster, self.clock, pods=pods, nodes=nodes).run()
        yield ReplicaSetController(
            self.cluster, self.clock, 1, replica_sets=sets, pods=pods, pod_index=index
        ).run()
        yield DeploymentController(
            self.cluster,
            self.clock,
            deployments=informers["deployments"],
            replica_sets=sets,
            pods=pods,
            pod_index=index,
        ).run()

    async def replicas(self):
        return (await self.cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas

    async def caches_equal_the_server(self):
        """Whether each cache holds the server's objects in the same versions, or their projections."""
        for informer in self.service._caches.all:
            listing = await self.cluster.list(informer.kind)
            said = informer.keep or version_of
            found = {(one.metadata.namespace, one.metadata.name): said(one) for one in listing.items}
            held = {key: one if informer.keep else version_of(one) for key, one in informer.objects.items()}
            if held != found:
                return False
        # The node loop caches another projection of pods than the HPA loop, from the same list and watch.
        pods = (await self.cluster.list(PODS)).items
        slim = {(pod.metadata.namespace, pod.metadata.name): slim_pod(pod) for pod in pods}
        return dict(self.loops["nodes"]._gatherer._sources["pods"].informer.objects) == slim

    async def settle(self):
        """The faults are over: caches equal the server, and both loops end ticks again."""
        self.proxy.set()
        self.proxy.cut()
        since = self.clock.now()
        for _ in range(600):
            ticked = all((loop.health.last_tick or 0) > since for loop in self.loops.values())
            if ticked and await self.caches_equal_the_server():
                return
            await self.clock.sleep(seconds(1))
        raise AssertionError(f"not settled: {self.said[-5:]}")

    def check(self):
        """No loop has met a bug, and no write was done twice.

        A writer that meets a conflict on an old cache overwrites the current object, as upstream does; where that has
        the desired value already, nothing changes.
        """
        for name, loop in self.loops.items():
            assert loop.health.bugs == 0, f"{name}: {loop.health.last_failure}"
        changes = [
            one
            for one in self.proxy.done()
            if (b"resourceVersion" in one.body and one.changed)
            or one.path.endswith("/eviction")
            or one.method == "DELETE"
        ]
        twice = [one for one, times in Counter(changes).items() if times > 1]
        assert not twice, twice


@asynccontextmanager
async def living(clock, *before, flags=(), ahead=0):
    """Yield a world with a Deployment that needs two nodes, and its HPA.

    ``before`` are faults from the start, ``ahead`` is how wrong the clock of the service is.
    """
    shown = Skewed(clock, ahead)
    async with (
        served(clock) as (cluster, _, connection),
        proxied(connection) as (proxy, through),
        HttpCluster(through, shown, limits=LIMITS) as client,
    ):
        proxy.set(*before)
        await cluster.create(
            DEPLOYMENTS, builders.deployment("web", replicas=2, cpu="1500m"), namespace="default"
        )
        await cluster.create(HPAS, builders.hpa("web", "web", max_replicas=6), namespace="default")
        world = World(cluster, proxy, client, clock, dict(flags), shown)
        tasks = [asyncio.ensure_future(part) for part in world.parts()]
        await world.cloud.start()
        running = asyncio.ensure_future(world.service.run())
        try:
            yield world
            assert not running.done(), running.exception()
            world.check()
        finally:
            for task in (running, *tasks):
                task.cancel()
            await asyncio.gather(running, *tasks, return_exceptions=True)


async def nodes_of(world):
    return len((await world.cluster.list(NODES)).items)


async def has_nodes(world, count):
    for _ in range(900):
        if await nodes_of(world) == count:
            return
        await world.clock.sleep(seconds(1))
    raise AssertionError(f"{await nodes_of(world)} nodes, not {count}: {world.said[-5:]}")


NAMES = sorted(set(READ_FAULTS) - {"huge"})
WRITE_FAULTS = (
    faults.loses_answers(),
    faults.hangs_up(faults.writes),
    faults.answers(409, "Conflict", where=faults.writes),
    faults.answers(500, "InternalError", where=faults.writes),
    faults.answers(429, "TooManyRequests", where=faults.writes, retry_after=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_schedule_of_faults(seed):
    """Fault after fault while the load is steady: nothing is scaled down or removed, and all is well in the end."""

    async def main(clock):
        draw = np.random.default_rng(seed)
        async with living(clock) as world:
            await has_nodes(world, 2)
            for _ in range(4):
                reading = READ_FAULTS[NAMES[draw.integers(len(NAMES))]]
                world.proxy.set(WRITE_FAULTS[draw.integers(len(WRITE_FAULTS))], *reading)
                match draw.integers(3):
                    case 0:
                        world.proxy.cut()
                    case 1:
                        world.cluster.expire_watches()
                    case 2:
                        await world.proxy.be_unreachable()
                        await clock.sleep(seconds(3))
                        await world.proxy.listen()
                await clock.sleep(seconds(float(draw.integers(5, 20))))
            await world.settle()
            assert (await world.replicas(), await nodes_of(world)) == (2, 2)
            # And it still acts: twice the load is twice the pods, on twice the nodes.
            world.usage.milli = 1500
            await has_nodes(world, 4)
            assert await world.replicas() == 4

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


@pytest.mark.parametrize("ahead", [minutes(-2), minutes(2), minutes(60)])
def test_a_wrong_clock_is_reported_of_and_acts_as_upstream_s(ahead):
    """Both loops go on by their own clock, say once what it does, and show by how much it is wrong."""

    async def main(clock):
        async with living(clock, ahead=ahead) as world:
            await has_nodes(world, 2)
            world.usage.milli = 1500
            # By a clock that is behind, pods are not waiting yet that are: so long as upstream they are left waiting.
            await has_nodes(world, 4)
            reported = [one for one in world.said if "the clock of this process is" in one]
            assert len(reported) == 1, reported
            assert ("ahead of" in reported[0], "older" in reported[0]) == (ahead > 0, ahead > 0)
            shown = read(world.registry)["kubetide_clock_skew_seconds",]
            assert abs(shown - to_seconds(ahead)) <= 6

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


def test_one_forbidden_resource_stops_one_loop():
    """HPAs may not be read: the horizontal loop waits and says why, and the node loop buys the nodes in demand."""

    async def main(clock):
        async with living(clock, faults.forbids("horizontalpodautoscalers", "autoscaling")) as world:
            await has_nodes(world, 2)
            assert world.loops["horizontal"].health.last_tick is None
            [reported] = {one for one in world.said if "forbidden" in one}
            assert reported.startswith("cannot read horizontalpodautoscalers")
            assert 'cannot list resource "horizontalpodautoscalers"' in reported or "cannot watch" in reported
            assert "kubetide-horizontal" in reported
            world.proxy.set()
            await until(clock, lambda: world.loops["horizontal"].health.last_tick)

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


async def refuses(world):
    await world.proxy.be_unreachable()


async def falls_silent(world):
    world.proxy.set(faults.is_silent())
    world.proxy.cut()


@pytest.mark.slow
@pytest.mark.parametrize("goes", [refuses, falls_silent])
def test_a_long_outage_is_no_reason_to_restart(goes):
    """While the server is out of reach: alive, not ready, the age of the caches grows; all is well soon after."""
    times = {"max-inactivity": "45s", "max-failing-time": "60s", "max-startup-time": "60s"}

    async def main(clock):
        async with living(clock, flags=times) as world:
            service, registry = world.service, world.registry
            await has_nodes(world, 2)
            assert (service.not_ready(), service.not_alive(), service.health_check()) == ("", "", "")
            await goes(world)
            world.usage.milli = 1500  # there is something to do
            for _ in range(30):
                await clock.sleep(seconds(10))
                assert service.not_alive() == ""
            assert service.not_ready().startswith("cannot read ")
            found = read(registry)
            assert found["kubetide_cache_failures", "pods"] > 0
            assert found["kubetide_cache_age_seconds", "pods"] > 240
            if goes is refuses:
                await world.proxy.listen()
            await world.settle()
            await has_nodes(world, 4)
            await until(clock, lambda: not (service.not_ready() or service.health_check()))
            assert service.not_alive() == ""
            assert read(registry)["kubetide_cache_failures", "pods"] == 0

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


def test_a_lost_lease_stops_every_write():
    """From the moment in which the guard says no, no write reaches the server, whatever there is to do."""

    async def main(clock):
        async with living(clock) as world:
            await has_nodes(world, 2)
            world.guard.why = "the lease is lost"
            await clock.sleep(seconds(20))  # what was under way has ended, also on a busy machine
            before = len(world.proxy.written)
            world.usage.milli = 1500
            await clock.sleep(seconds(60))
            assert world.proxy.written[before:] == []
            assert (await world.replicas(), await nodes_of(world)) == (2, 2)

    run_paced(main, start=machine_time(), pace=Pace(SPEED))
