"""``cluster_autoscaler_node_group_*``: limits of groups that exist, and why a group is left out."""

from __future__ import annotations

from msgspec.structs import replace
from tests.nodes.frozen import World, group, pod
from tests.runtime.series.reading import read

from kubetide.nodes.series.group_gauges import PREFIX, GroupGauges
from kubetide.units.exposition import Registry


def shown(world):
    registry = Registry()
    GroupGauges(registry).collect(world.state, world.now)
    return read(registry, PREFIX)


def test_a_group_that_does_not_exist_yet_has_a_target_and_no_limits():
    world = World(groups=[group("made"), group("to-be-made", exists=False)])
    world.tick()
    found = shown(world)
    assert {key[0] for key in found if "made" in key} == {
        "min_count",
        "max_count",
        "target_count",
        "healthiness",
        "backoff_status",
    }
    assert {key[0] for key in found if "to-be-made" in key} == {"target_count"}


def test_a_failure_without_a_code_is_unknown():
    """The empty reason stands for no failure at all."""
    world = World(groups=[group("g")], pods=[pod("a")])
    world.refused["g"] = "no"
    world.tick()
    backoff = world.state.memory.backoff
    backoff["g"] = replace(backoff["g"], error_code="")
    assert shown(world)["backoff_status", "g", "unknown"] == 1
