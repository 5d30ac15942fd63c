"""An informer over HTTP: what it caches, and when it lists again."""

from __future__ import annotations

from itertools import pairwise

from tests.cluster.answering import asking, status
from tests.cluster.served import served
from tests.watching.informing import informing

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds


async def until(clock, holds):
    deadline = clock.monotonic() + minutes(20)
    while not holds():
        assert clock.monotonic() < deadline
        await clock.sleep(seconds(1))


def test_an_informer_over_http():
    """It lists in a stream, resumes a dropped watch, lists again after an expiry, and ends equal to the cluster."""

    async def main(clock):
        async with served(clock) as (cluster, _, connection), HttpCluster(connection, clock) as client:
            await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")
            async with informing(client, clock) as informer:
                await informer.synced()
                await cluster.create(CONFIG_MAPS, builders.config_map("b"), namespace="default")
                await until(clock, lambda: len(informer.objects) == 2)
                cluster.drop_watches()
                await cluster.create(CONFIG_MAPS, builders.config_map("c"), namespace="default")
                await until(clock, lambda: len(informer.objects) == 3)
                assert informer.last_relist is None
                cluster.expire_watches()
                await cluster.delete(CONFIG_MAPS, "a", namespace="default")
                await until(clock, lambda: len(informer.objects) == 2)
                assert (informer.last_relist.before, informer.last_relist.lost) == (3, 1)
                held = {
                    (item.metadata.namespace, item.metadata.name): item
                    for item in (await client.list(CONFIG_MAPS)).items
                }
                assert dict(informer.objects) == held

    run_paced(main, start=machine_time(), pace=Pace(10))


def test_many_clients_do_not_come_back_at_once():
    """After 410 each client lists again after a pause of its own; a failing server is asked after growing ones."""

    async def pauses(clock, seed, answer):
        at = []

        async def handler(request):
            at.append(clock.monotonic())
            return answer

        async with asking(handler, clock, seed=seed) as client, informing(client, clock):
            await until(clock, lambda: len(at) >= 4)
        return [then - first for first, then in pairwise(at)][:3]

    async def main(clock):
        expired = status(410, "Expired")
        first, second = await pauses(clock, 1, expired), await pauses(clock, 2, expired)
        assert all(seconds(1) <= pause < seconds(3) for pause in first + second)
        assert len({round(pause / seconds(0.05)) for pause in first + second}) > 2
        failing = await pauses(clock, 1, status(500, "InternalError"))
        for pause, least in zip(failing, (1, 2, 4), strict=True):
            assert seconds(least) <= pause < seconds(2 * least + 1)

    run_paced(main, start=machine_time(), pace=Pace(10))
