"""Any schedule of faults over the horizontal loop, while others write: what must hold all along, and at the end.

Metrics, caches and writes all go through the proxy. Time is sped up, so a schedule may come out a little differently
each time: what is asked of it must hold for every one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from weakref import WeakSet

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from tests.cluster.faults import kinds as faults
from tests.cluster.faults.proxy import proxied
from tests.cluster.faults.test_fault_loops import WRITE_FAULTS, Forgetting, Switch
from tests.cluster.faults.test_fault_reads import READ_FAULTS
from tests.cluster.served import served

from kubetide.cluster import HttpCluster, HttpMetrics
from kubetide.cluster.limits import Limits
from kubetide.loop import Sources
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, PodMetrics
from kubetide.ports.errors import NotFound
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.service import Service
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced
from kubetide.testing import builders
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, before, between, format_rfc3339, minutes, seconds
from kubetide.watching import holds_of

SPEED = 30
LIMITS = Limits(deadline=seconds(15), stall=seconds(15))
MAX_AGE = seconds(20)
FLAGS = {
    "horizontal-pod-autoscaler-sync-period": "3s",
    # A wrong wish for less would be carried out at once.
    "horizontal-pod-autoscaler-downscale-stabilization": "0s",
    "max-cache-age": "20s",
    "relist-hold": "20s",
}


class Load:
    """metrics.k8s.io: a total of milli-CPU over all pods of the Deployment, each with its share."""

    def __init__(self, clock):
        self.clock, self.names, self.milli = clock, [], 400

    def pod_metrics(self):
        now, share = format_rfc3339(self.clock.now()), self.milli // max(len(self.names), 1)
        return [
            PodMetrics(
                metadata=ObjectMeta(name=name, namespace="default", labels={"app": "web"}),
                timestamp=now,
                window="30s",
                containers=(ContainerMetrics(name="app", usage={"cpu": f"{share}m", "memory": "1Mi"}),),
            )
            for name in self.names
        ]

    def node_metrics(self):
        return []


class Noting:
    """The loop's client: notes what the loop decided from, and how often it had a write sent."""

    def __init__(self, inner, world):
        self._inner, self._world = inner, world
        self._judged = WeakSet()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def replace_scale(self, kind, name, replicas, **more):
        self._world.judge()
        # Each write has a task of its own, and is repeated there after a conflict, maybe when the next tick is under way.
        write = asyncio.current_task()
        if write not in self._judged:
            self._judged.add(write)
            self._world.judge_scale(replicas)
        return await self._inner.replace_scale(kind, name, replicas, **more)

    async def patch(self, kind, name, patch, **more):
        self._world.judge()
        return await self._inner.patch(kind, name, patch, **more)


class World:
    """One Deployment with an HPA, pods that follow its replicas, and the loop behind the proxy."""

    def __init__(self, cluster, proxy, client, load, clock):
        self.cluster, self.proxy, self.load, self.clock = cluster, proxy, load, clock
        self.wrong, self.sent, self.number = [], Counter(), 0
        self.service = Service(
            make_config([("--", FLAGS)]),
            Noting(client, self),
            clock,
            sources=Sources(HttpMetrics(client, clock)),
            cloud=None,
            guard=Switch(),
            recorder=Forgetting(),
            registry=Registry(),
            warn=lambda _: None,
            seed=1,
        )
        [self.loop] = [one.loop for one in self.service._loops]
        self.caches = {one.kind.plural: one for one in self.service._caches.all}
        send = client._transport.send

        async def counted(asked):
            if asked.writes:
                self.sent[asked.method, asked.path, asked.data or b""] += 1
            return await send(asked)

        client._transport.send = counted

    def synced(self):
        return all(cache.has_synced for cache in self.caches.values())

    def judge(self):
        """Look at what a write was decided from."""
        if not self.synced():
            self.wrong.append("something is written before all caches have been listed")

    def judge_scale(self, replicas):
        """Look at what a write of fewer replicas was decided from."""
        current = self.loop.state.scales["default", "web"].spec_replicas
        if replicas >= current:
            return
        pods, began = self.caches["pods"], before(self.clock.now(), self.took())
        seen = f"from {current} to {replicas} at {began}, pods received at {pods.last_received}, holds {self.loop.holds}"
        if between(pods.last_received, began) > MAX_AGE:
            self.wrong.append(f"pods are scaled down on a cache that is too old: {seen}")
        # A list that came while the tick was under way was not known when it decided.
        known = pods.last_relist is not None and pods.last_relist.at <= began
        if known and holds_of(pods, began, self.loop.state.settings, may_be_old=False):
            self.wrong.append(f"pods are scaled down on a cache that has lost many: {seen}")

    def took(self):
        return Duration(self.clock.monotonic() - self.loop.health.began)

    async def replicas(self):
        return (await self.cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas

    async def follow(self):
        """Make as many pods as the Deployment desires, ready at once."""
        since = format_rfc3339(before(self.clock.now(), minutes(30)))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
        status = {"phase": "Running", "startTime": since, "conditions": [ready]}
        while True:
            desired = await self.replicas()
            while len(self.load.names) > desired:
                await self.cluster.delete(PODS, self.load.names.pop(), namespace="default", grace_period_s=0)
            while len(self.load.names) < desired:
                self.number += 1
                name = f"web-{self.number}"
                body = builders.pod(name, labels={"app": "web"}, cpu="100m")
                await self.cluster.create(PODS, body, namespace="default")
                await self.cluster.patch(
                    PODS, name, {"status": status}, namespace="default", subresource="status"
                )
                self.load.names.append(name)
            await self.cluster.patch(
                DEPLOYMENTS,
                "web",
                {"status": {"replicas": desired}},
                namespace="default",
                subresource="status",
            )
            await self.clock.sleep(seconds(1))

    async def write(self, what, number):
        """Somebody else writes."""
        match what:
            case "load":
                self.load.milli = 200 + 100 * number
            case "scale":
                await self.cluster.patch(
                    DEPLOYMENTS, "web", {"spec": {"replicas": 1 + number}}, namespace="default"
                )
            case "hpa":
                patch = {
                    "metadata": {"annotations": {"n": str(number)}},
                    "spec": {"maxReplicas": 10 + number},
                }
                await self.cluster.patch(HPAS, "web", patch, namespace="default")
            case "others":
                for name in (f"other-{number}", f"other-{number}-b"):
                    try:
                        await self.cluster.delete(PODS, name, namespace="default", grace_period_s=0)
                    except NotFound:
                        await self.cluster.create(PODS, builders.pod(name), namespace="default")

    async def disturb(self, how):
        match how:
            case "cut":
                self.proxy.cut()
            case "expire":
                self.cluster.expire_watches()
            case "away":
                await self.proxy.be_unreachable()
                await self.clock.sleep(seconds(2))
                await self.proxy.listen()

    async def equal(self):
        for cache in self.caches.values():
            listing = await self.cluster.list(cache.kind)
            found = {(one.metadata.namespace, one.metadata.name): cache.keep(one) for one in listing.items}
            if cache.objects != found:
                return False
        return True

    async def until(self, holds, about):
        for _ in range(600):
            if await holds():
                return
            await self.clock.sleep(seconds(1))
        raise AssertionError(
            f"{about}: {self.loop.health.last_failure or [c.last_error for c in self.caches.values()]}"
        )


@asynccontextmanager
async def living(clock):
    load = Load(clock)
    async with (
        served(clock, metrics=load) as (cluster, _, connection),
        proxied(connection) as (proxy, through),
        HttpCluster(through, clock, limits=LIMITS) as client,
    ):
        await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=4), namespace="default")
        await cluster.create(
            HPAS, builders.hpa("web", "web", max_replicas=10, cpu_percent=100), namespace="default"
        )
        world = World(cluster, proxy, client, load, clock)
        tasks = [asyncio.ensure_future(one) for one in (world.follow(), world.service.run())]
        try:
            yield world
            assert not any(task.done() for task in tasks), tasks
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


FAULTS = {
    **{name: found for name, found in READ_FAULTS.items() if name != "huge"},
    "": [],
    "lists-that-lack-some": [faults.no_streams(), faults.loses_items("pods")],
}
steps = st.tuples(
    st.sampled_from(sorted(FAULTS)),
    st.integers(-1, len(WRITE_FAULTS) - 1),
    st.sampled_from(["", "cut", "expire", "away"]),
    st.lists(st.tuples(st.sampled_from(["load", "scale", "hpa", "others"]), st.integers(0, 5)), max_size=3),
    st.integers(1, 30),
)
WELL = ("", -1, "", [], 10)
UNREADABLE = ("403", -1, "", [], 20)
AGED = ("silent-watches", -1, "cut", [], 40)
STILL_AGED = ("silent-watches", -1, "", [("load", 0)], 20)
LACKING = ("lists-that-lack-some", -1, "expire", [("scale", 5)], 15)


async def play(world, schedule):
    for reading, writing, disturbance, writes, lasts in schedule:
        world.proxy.set(*([WRITE_FAULTS[writing]] if writing >= 0 else []), *FAULTS[reading])
        await world.disturb(disturbance)
        for what, number in writes:
            await world.write(what, number)
        await world.clock.sleep(seconds(lasts))
    world.proxy.set()
    world.proxy.cut()
    world.cluster.expire_watches()


@pytest.mark.slow
# Making a failing schedule smaller takes longer than reading it.
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(steps, min_size=1, max_size=5))
@example([UNREADABLE])
@example([WELL, AGED, STILL_AGED])
@example([WELL, LACKING])
@example([("", 0, "", [("scale", 0)], 20)])
def test_any_schedule(schedule):
    """Nothing decided on caches that are not there or too old, no write sent twice, and the wish fulfilled at the end."""

    async def main(clock):
        async with living(clock) as world:
            await play(world, schedule)
            await world.until(world.equal, "the caches do not come to equal the server")
            world.load.milli = 900

            async def fulfilled():
                return await world.replicas() == 9 and await world.equal()

            await world.until(fulfilled, "the loop does not act any more")
            assert world.loop.health.bugs == 0, world.loop.health.last_failure
            assert world.wrong == []
            arrived = Counter((one.method, one.path, one.body) for one in world.proxy.written)
            assert not [one for one, times in arrived.items() if times > world.sent[one]]

    run_paced(main, start=machine_time(), pace=Pace(SPEED))
