"""Ticks of the node loop that may be skipped, as they would have the last one's result."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pod, pods

from kubetide.nodes.registry.unchanged import is_on_time, unchanged_until
from kubetide.units.time import after, before, format_rfc3339, hours, minutes, seconds


def town(*, used="3", settings=None):
    """Two nodes of one group, both full where the pods use enough."""
    return World(
        nodes=[node("n0"), node("n1")],
        groups=[group("g", nodes=("n0", "n1"), minimum=0)],
        pods=[*pods("web", 1, cpu=used, node="n0"), *pods("api", 1, cpu=used, node="n1")],
        settings=settings,
    )


def until(world, *, ticks=3, **changes):
    for number in range(ticks):
        world.tick(at=seconds(10 * number), **changes)
    return unchanged_until(world.state)


def test_a_cluster_whose_nodes_are_used_rests():
    """Without demand and removable nodes, no later tick differs by the time alone."""
    world = town()
    assert until(world) > after(START, hours(1000))
    assert is_on_time(world.state, after(START, seconds(30)))
    assert not is_on_time(world.state, after(START, seconds(25))), "sooner than any tick so far"


@pytest.mark.parametrize(
    "why",
    [
        {"used": "100m"},
        {"settings": {"consolidation_enabled": True}},
        {"settings": {"scale_down_delay_type_local": True}},
        {"settings": {"steer_pods_to_fuller_nodes": True}},
        {"settings": {"scale_down_enabled": False}},
        {"settings": {"remember_demand": hours(1)}},
    ],
    ids=lambda why: "-".join(why.get("settings", why)),
)
def test_a_timer_that_runs_ends_the_rest(why):
    """Where a node is unneeded, or a rule with a time of its own is on, no tick is taken to be as the last."""
    assert until(town(**why)) is None


def test_a_hold_or_a_cooldown_is_no_rest():
    """Both end by the time alone."""
    world = town()
    assert until(world, holds=("the cache is old",)) is None
    cooling = town()
    cooling.state.memory.last_scale_up = before(START, minutes(1))
    assert until(cooling) is None
    over = town()
    over.state.memory.last_scale_up = before(START, minutes(20))
    assert until(over) is not None


def test_a_pod_without_a_place_is_no_rest():
    """Demand is evaluated anew in each tick."""
    world = town()
    assert until(world) is not None
    world.tick(at=minutes(1), pods=tuple(pods("more", 1, cpu="100")))
    assert unchanged_until(world.state) is None


def test_idle_ticks_end_when_a_pod_counts_as_deleted():
    """The capacity of a pod that is being deleted counts as free from 30 s after its grace on, without any change."""
    going = pod("web-0", cpu="3", node="n0")
    deleted = format_rfc3339(before(START, seconds(10)))
    meta = replace(going.metadata, deletion_timestamp=deleted, deletion_grace_period_seconds=30)
    world = World(
        nodes=[node("n0"), node("n1")],
        groups=[group("g", nodes=("n0", "n1"), minimum=0)],
        pods=[replace(going, metadata=meta), *pods("api", 1, cpu="3", node="n1")],
    )
    end = until(world)
    assert after(START, seconds(40)) <= end <= after(START, seconds(60))
    assert not world.state.memory.scale_down.unneeded
    world.tick(at=minutes(2))
    assert "n0" in world.state.memory.scale_down.unneeded
    assert unchanged_until(world.state) is None
