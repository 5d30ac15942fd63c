"""The node loop's cache of a cluster behind a network: each pod once, and only the fields that are read."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import aclosing

import msgspec
import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.horizontal.facts.views import view_of_pod
from kubetide.nodes.controller.gather import Gatherer
from kubetide.nodes.facts.slim_pods import slim_pod
from kubetide.nodes.facts.slimming import slim_node
from kubetide.nodes.state import State
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import Pod
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, parse_rfc3339, seconds
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T08:00:00Z")


class Sent(Pod, gc=True, weakref=True):
    """A whole pod as it has come."""


class Remote(EmbeddedCluster):
    """The embedded cluster as if it were behind a network: each object that it gives is the reader's own."""

    def __init__(self, clock):
        super().__init__(Store(), clock, seed=1)
        self.pods = []
        """Weak references to the pods that were sent."""

    def own(self, item, project):
        copy = msgspec.json.decode(
            msgspec.json.encode(item), type=Sent if isinstance(item, Pod) else type(item)
        )
        if isinstance(copy, Sent):
            self.pods.append(weakref.ref(copy))
        return copy if project is None else project(copy)

    async def list_and_watch(self, kind, *, keep=None, **where):
        listing = await self.list(kind, **where)
        yield Listing(tuple(self.own(item, keep) for item in listing.items), listing.resource_version)
        since = listing.resource_version
        async with aclosing(self.watch(kind, resource_version=since, keep=keep, **where)) as batches:
            async for batch in batches:
                yield batch

    async def watch(self, kind, *, keep=None, **where):
        async with aclosing(super().watch(kind, **where)) as batches:
            async for batch in batches:
                yield [
                    event._replace(object=event.object and self.own(event.object, keep)) for event in batch
                ]

    def spread(self, pause):
        return pause


class NoMachines:
    gpu_label = ""

    async def refresh(self):
        return ()


async def fill(cluster):
    await cluster.create(NODES.untyped, builders.node("n"))
    for number in range(3):
        pod = builders.pod(f"p{number}", labels={"app": "a"})
        pod["spec"]["nodeName"] = "n"
        pod["spec"]["volumes"] = [{"name": f"token-{number}", "projected": {}}]
        await cluster.create(PODS.untyped, pod, namespace="default")


OTHERS = {"nobody": [], "the HPA loop": [view_of_pod], "a reader of whole pods": [None]}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_the_state_holds_the_pods_of_the_cache(others):
    """Pods are slim in the cache, with one shared key each, unless a reader needs whole pods; then the cache has all."""
    slim = None not in others

    async def main(clock):
        cluster = Remote(clock)
        await fill(cluster)
        caches, state = Caches(cluster, clock), State()
        readers = [caches.of(PODS, keep=keep) for keep in others]
        gatherer = Gatherer(cluster, NoMachines(), clock, None, state, caches)
        held = gatherer._sources["pods"].informer
        keeping = asyncio.ensure_future(caches.run())
        await gatherer.synced()
        assert [pod() is None for pod in cluster.pods] == [slim] * 3
        for changes in range(2):
            state.apply(await gatherer.begin(), keys=gatherer.pod_keys())
            whole = (await cluster.list(PODS)).items
            assert list(state.pods.values()) == [slim_pod(pod) for pod in whole]
            for (key, pod), (own_key, own_pod) in zip(
                sorted(held.objects.items()), sorted(state.pods.items()), strict=True
            ):
                assert (pod is own_pod) == slim
                assert key is own_key
                assert slim or pod.spec.volumes
            for reader in readers if slim else ():
                assert list(reader.objects.values()) == [view_of_pod(pod) for pod in whole]
                assert all(key is own_key for key, own_key in zip(reader.objects, held.objects, strict=True))
            nodes = (await cluster.list(NODES)).items
            assert list(state.nodes.values()) == [slim_node(node) for node in nodes]
            patch = {"metadata": {"labels": {"changed": str(changes)}}}
            await cluster.patch(PODS, "p1", patch, namespace="default")
            # Nothing of this is read.
            unread = {"status": {"podIP": f"10.0.0.{changes}", "startTime": f"2026-03-02T08:00:0{changes}Z"}}
            await cluster.patch(PODS, "p2", unread, namespace="default", subresource="status")
            await clock.sleep(seconds(1))
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    run_virtual(main, start=START)


def test_a_quiet_cache_of_the_same_process_holds_nothing_until_its_watch_has_failed_for_long():
    """However long nothing happens, nodes may go; ten minutes after the API server has failed they may not."""

    class Outage:
        lasts = False

        async def before(self, _request):
            if self.lasts:
                raise Unavailable("down")

    async def main(clock):
        outage = Outage()
        cluster = EmbeddedCluster(Store(), clock, seed=1, faults=outage)
        caches, state = Caches(cluster, clock), State()
        gatherer = Gatherer(cluster, NoMachines(), clock, None, state, caches)
        running = asyncio.ensure_future(caches.run())
        await gatherer.synced()
        await clock.sleep(minutes(30))
        assert (await gatherer.begin()).holds == ()
        gatherer.finished()
        outage.lasts = True
        cluster.expire_watches()
        await clock.sleep(minutes(10))
        assert (await gatherer.begin()).holds == ()
        gatherer.finished()
        await clock.sleep(seconds(2))
        holds = (await gatherer.begin()).holds
        assert [one.split(" (")[0] for one in holds] == [
            "nothing was heard about pods since 2026-03-02T08:30:01Z",
            "nothing was heard about nodes since 2026-03-02T08:30:01Z",
        ]
        running.cancel()

    run_virtual(main, start=START)
