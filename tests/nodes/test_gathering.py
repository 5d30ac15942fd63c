"""What the node loop holds of a cluster behind a network: each pod once, and no more of it than is read."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.nodes.controller.gather import Gatherer
from kubetide.nodes.slim_pods import slim_pod
from kubetide.nodes.slimming import slim_node
from kubetide.nodes.state import State
from kubetide.objects.kinds import NODES, PODS
from kubetide.ports.cluster import Listing
from kubetide.runtime.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T08:00:00Z")


class Remote(EmbeddedCluster):
    """The embedded cluster as if it were behind a network: each object that it gives is the reader's own."""

    async def list_and_watch(self, kind, *, keep=None, **where):
        listing = await self.list(kind, **where)
        items = tuple(own(item, keep) for item in listing.items)
        yield Listing(items, listing.resource_version)
        since = listing.resource_version
        async with aclosing(self.watch(kind, resource_version=since, keep=keep, **where)) as batches:
            async for batch in batches:
                yield batch

    async def watch(self, kind, *, keep=None, **where):
        async with aclosing(super().watch(kind, **where)) as batches:
            async for batch in batches:
                yield [event._replace(object=event.object and own(event.object, keep)) for event in batch]

    def spread(self, pause):
        return pause


def own(item, keep):
    copy = msgspec.json.decode(msgspec.json.encode(item), type=type(item))
    return copy if keep is None else keep(copy)


class NoMachines:
    async def refresh(self):
        return ()


async def fill(cluster):
    await cluster.create(NODES.untyped, builders.node("n"))
    for number in range(3):
        pod = builders.pod(f"p{number}", labels={"app": "a"})
        pod["spec"]["nodeName"] = "n"
        pod["spec"]["volumes"] = [{"name": f"token-{number}", "projected": {}}]
        await cluster.create(PODS.untyped, pod, namespace="default")


@pytest.mark.parametrize("alone", [True, False])
def test_the_state_holds_the_pods_of_the_cache(alone):
    """Where nobody else reads them they are slim in the cache, and one object with one key; else the cache has all."""

    async def main(clock):
        cluster = Remote(Store(), clock, seed=1)
        await fill(cluster)
        caches, state = Caches(cluster, clock), State()
        if not alone:
            caches.of(PODS)
        gatherer = Gatherer(cluster, NoMachines(), clock, None, state, caches)
        keeping = asyncio.ensure_future(caches.run())
        await gatherer.synced()
        for changes in range(2):
            state.apply(await gatherer.begin(), keys=gatherer.pod_keys())
            [held] = [one for one in caches.all if one.kind is PODS]
            whole = (await cluster.list(PODS)).items
            assert list(state.pods.values()) == [slim_pod(pod) for pod in whole]
            for (key, pod), (own_key, own_pod) in zip(
                sorted(held.objects.items()), sorted(state.pods.items()), strict=True
            ):
                assert (pod is own_pod) == alone
                assert key is own_key
                assert alone or pod.spec.volumes
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
