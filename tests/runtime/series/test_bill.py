"""The cost of nodes and the lower bound of their pods' cost, on a living cluster in virtual time."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, pod
from tests.runtime.series.reading import read
from tests.runtime.series.scraped import SMALL, reported

from kubetide.embedded.cloud import CATALOGUE
from kubetide.nodes.series.bill import BillSeries
from kubetide.units.exposition import Registry
from kubetide.units.time import after, minutes

COST, BOUND = ("kubetide_nodes_cost_total",), ("kubetide_nodes_cost_bound_total",)


def test_the_cost_is_the_clouds_and_the_bound_is_that_of_the_requests():
    """An hour of six full nodes costs what the cloud has billed; after the pods are deleted the bound does not grow."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(60))
        found = read(world.registry)
        assert found[COST] == pytest.approx(world.cloud.spent(), rel=0.02)
        price = CATALOGUE[SMALL.instance_type].price_per_hour
        cores = (
            CATALOGUE[SMALL.instance_type].cpu_milli - CATALOGUE[SMALL.instance_type].reserved_cpu_milli
        ) / 1000
        assert found[BOUND] == pytest.approx(6 * 1.5 * price / cores, rel=0.12), (
            "less what the nodes took to boot"
        )
        assert found[BOUND] < found[COST]
        await world.scale("web", 0)
        await world.after(minutes(6))
        before = read(world.registry)
        await world.after(minutes(20))
        later = read(world.registry)
        assert later[BOUND] == pytest.approx(before[BOUND])
        assert later[COST] > before[COST]

    reported(story)


def test_nothing_is_counted_of_groups_without_a_price():
    """Groups without a known price are in neither sum."""
    registry = Registry()
    series, world = BillSeries(registry), World(pods=[pod("p")], groups=[group("g")])
    world.increases()
    for _ in range(3):
        series.update(world.state, world.now)
        world.now = after(world.now, minutes(1))
    assert not any(read(registry, "kubetide_nodes_").values())
