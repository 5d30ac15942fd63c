"""When a node loop reads claims, classes and slices from its cluster, and what it does without the right to."""

from __future__ import annotations

from tests.nodes import live

from kubetide.objects.kinds import DEVICE_KINDS, PODS
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds


def on_a_cluster(main, **options):
    async def run(clock):
        world = live.World(clock, **options)
        async with world.running():
            return await main(world, clock)

    return run_virtual(run, start=live.START)


async def add_pod_with_claim(world):
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
    await world.cluster.create(PODS, builders.pod("train", extra={"spec": spec}), namespace="default")


def test_devices_are_read_once_a_pod_may_have_some():
    """Until then no devices are read; an extended resource is reason enough to read them."""

    async def main(world, clock):
        caches = world.caches
        await world.deploy(replicas=1)
        await clock.sleep(seconds(30))
        assert not {one.kind for one in caches.all} & {*DEVICE_KINDS}
        asks = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
        containers = {"containers": [{"name": "main", "image": "train", "resources": asks}]}
        await world.cluster.create(
            PODS, builders.pod("train", extra={"spec": containers}), namespace="default"
        )
        await clock.sleep(seconds(30))
        return {one.kind for one in caches.all} >= {*DEVICE_KINDS}

    assert on_a_cluster(main)


def test_without_the_flag_no_devices_are_read():
    """With --enable-dynamic-resource-allocation=false a pod with a claim changes nothing."""

    async def main(world, clock):
        await add_pod_with_claim(world)
        await clock.sleep(seconds(30))
        return {one.kind for one in world.caches.all} & {*DEVICE_KINDS}

    assert on_a_cluster(main, enable_dynamic_resource_allocation=False) == set()


def test_a_cluster_that_refuses_devices_is_served_without_them():
    """The loop goes on, the error names the missing role, and nodes are bought as if there were no claims."""

    async def main(world, clock):
        await add_pod_with_claim(world)
        await clock.sleep(minutes(3))
        caches = world.caches
        reported = {with_hint(caches.of(kind).last_error, ("nodes",)) for kind in DEVICE_KINDS}
        assert all(one.endswith("; ClusterRole kubetide-nodes of deploy/ grants it") for one in reported)
        assert world.controller.state.devices.unread == tuple(kind.plural for kind in DEVICE_KINDS)
        return len(world.nodes)

    assert on_a_cluster(main, wrap=lambda inner: live.Refusing(inner, DEVICE_KINDS)) == 1
