"""A service with both loops reports the series of both, on one page."""

from __future__ import annotations

import asyncio

import pytest
from tests.horizontal.running import START, MemoryRecorder, Usage
from tests.nodes.live import FREE, SMALL
from tests.runtime.series.reading import read
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud
from kubetide.loop import Sources
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.service import Service
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.exposition import Registry
from kubetide.units.time import minutes, seconds


async def service_of_both(clock, registry, recorder):
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    cloud = EmbeddedCloud(cluster, clock, seed=1, groups=(SMALL,))
    await cloud.start()
    return Service(
        make_config([("--", {"controllers": "horizontal,nodes", "cloud-provider": "embedded"})]),
        cluster,
        clock,
        sources=Sources(Usage(cluster, clock, 100)),
        cloud=cloud,
        guard=FREE,
        recorder=recorder,
        registry=registry,
        warn=pytest.fail,
        seed=1,
    )


def test_both_loops_are_on_the_page():
    """After five minutes the ticks of both are there, by their own periods, and all records are stored."""

    async def main(clock):
        registry, stored = Registry(), MemoryRecorder()
        service = await service_of_both(clock, registry, stored)
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(5) + seconds(1))
        found = read(registry)
        await stop(task)
        assert found["kubetide_horizontal_tick_duration_seconds_count",] == 20
        assert found["cluster_autoscaler_function_duration_seconds_count", "main"] == 31
        assert found["cluster_autoscaler_last_activity", "main"] == (START + minutes(5)) / 1e9
        assert len(stored.lines) >= 20 + 31

    run_virtual(main, start=START)


def test_a_replica_that_waits_for_its_turn_has_no_series_of_the_loops():
    """As upstream's: cluster_safe_to_autoscale of 0 on a replica that has looked at nothing is no alarm."""

    async def main(clock):
        registry = Registry()
        service = await service_of_both(clock, registry, MemoryRecorder())
        prefixes = ("cluster_autoscaler_", "horizontal_pod_autoscaler_")

        def of_loops():
            return {name for name, *_ in read(registry) if name.startswith(prefixes)}

        assert of_loops() == set()
        service.begin()
        service.begin()
        assert "cluster_autoscaler_cluster_safe_to_autoscale" in of_loops()
        assert "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers" in of_loops()

    run_virtual(main, start=START)
