"""Limits of the cluster, caps, and minimum sizes: how much is bought at most, and at least."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import (
    World,
    group,
    node,
    pod,
    pods,
    template,
)

from kubetide.ports.cloud import GroupOptions
from kubetide.units.time import minutes, seconds


def test_limits_cut_what_is_bought():
    """--max-nodes-total and --cores-total bound an increase."""
    few = World(pods=pods("a", 9, cpu="3"), groups=[group("g")], settings={"max_nodes_total": 2})
    assert few.increases() == {"g": 2}
    small = World(pods=pods("a", 9, cpu="3"), groups=[group("g")], settings={"cores_total": "0:13"})
    assert small.increases() == {"g": 3}


def test_a_group_that_grew_for_pods_still_comes_up_to_its_minimum():
    """In the same tick, by what is still missing; --max-nodes-total counts the nodes requested just before."""
    enforced = {"enforce_node_group_min_size": True}
    groups = [group("g", minimum=3)]
    world = World(pods=[pod("a")], groups=groups, settings=enforced)
    world.tick()
    assert world.groups["g"].target_size == 3
    world = World(pods=[pod("a")], groups=groups, settings={**enforced, "max_nodes_total": 2})
    world.tick()
    assert world.groups["g"].target_size == 2


def test_groups_come_up_to_their_minimum_within_the_total():
    """Together they stay within --max-nodes-total, and an event says that it is reached."""
    settings = {"enforce_node_group_min_size": True, "max_nodes_total": 5}
    world = World(groups=[group("g", minimum=3), group("h", minimum=3)], settings=settings)
    world.tick()
    assert (world.groups["g"].target_size, world.groups["h"].target_size) == (3, 2)
    said = [one.message for one in world.events if one.reason == "MaxNodesTotalReached"]
    assert said == ["Max total nodes in cluster reached: 5"]


@pytest.mark.parametrize(("enforced", "told"), [(False, 1), (True, 0)])
def test_pods_hear_of_the_total_unless_groups_come_up_to_their_minimum(enforced, told):
    """As upstream: the report of the increases to the minimum takes the place of the one of an attempt that was not made."""
    settings = {"enforce_node_group_min_size": enforced, "max_nodes_total": 1}
    world = World(
        groups=[group("g", nodes=["n1"])], nodes=[node("n1")], pods=[pod("p", cpu="5")], settings=settings
    )
    world.tick()
    assert len(world.messages("NotTriggerScaleUp")) == told
    assert len(world.messages("MaxNodesTotalReached")) == 1


def test_errors_of_parallel_increases_are_one_message():
    """With --parallel-scale-up the first by name leads and the others follow; a group that grew has not failed with them."""
    zone = "topology.kubernetes.io/zone"
    groups = [group(name, made=template(labels={zone: name})) for name in "abc"]
    together = {"balance_similar_node_groups": True, "parallel_scale_up": True}
    world = World(pods=pods("p", 3, cpu="3"), groups=groups, settings=together)
    world.refused.update(c="no c", a="no a")
    world.tick()
    said = world.state.tick.rounds[-1]
    assert sorted(said.failed) == ["a", "c"]
    start = "failed to increase node group size: no"
    assert said.error == f'{start} a ...and other errors: ["{start} c"]'
    assert said.remain == ()
    for name in "abc":
        world = World(pods=pods("p", 3, cpu="3"), groups=groups, settings=together)
        world.refused[name] = "no"
        world.tick()
        assert world.state.tick.rounds[-1].remain == ()


def test_an_error_at_the_minimum_is_its_own():
    """Not that of the increase for pods before it."""
    groups = [group("a"), group("b", minimum=1, made=template(cpu="1"))]
    world = World(pods=[pod("p", cpu="3")], groups=groups, settings={"enforce_node_group_min_size": True})
    world.refused.update(a="no a", b="no b")
    world.tick()
    assert [one.error[-4:] for one in world.state.tick.rounds] == ["no a", "no b"]


def test_a_group_that_goes_to_its_maximum_counts_as_a_whole():
    """The expander sees its maximum, as upstream's does; the missing nodes are bought, also where limits leave just that."""
    made = group("g", nodes=["n1"], maximum=3, options=GroupOptions(zero_or_max_node_scaling=True))
    objects = {"nodes": [node("n1")], "pods": [pod("x", cpu="4", node="n1"), pod("p", cpu="3")]}
    for limits in ({}, {"cores_total": "0:12"}, {"max_nodes_total": 3}):
        world = World(**objects, groups=[made], settings=limits)
        assert world.increases() == {"g": 2}
        assert [(one.group.id, one.nodes) for one in world.state.tick.options] == [("g", 3)]


def test_a_purchase_is_a_cooldown_where_nodes_never_go():
    """--scale-down-enabled=false: upstream says so of the tick that bought, and of others that nothing was tried."""
    world = World(pods=[pod("p")], groups=[group("g")], settings={"scale_down_enabled": False})
    assert world.increases() == {"g": 1}
    assert world.state.memory.scale_down.status.result == "ScaleDownInCooldown"
    world.tick(at=seconds(10))
    assert world.state.memory.scale_down.status.result == "ScaleDownNotTried"


def test_cap_per_hour_bounds_buying():
    """No more nodes are requested within an hour than the cap says, whatever the demand."""
    cap = {"max_node_increases_per_hour": 3}
    world = World(pods=pods("a", 5, cpu="3"), groups=[group("g"), group("h")], settings=cap)
    assert sum(world.increases().values()) == 3
    assert world.increases(at=minutes(1), pods=tuple(pods("b", 4, cpu="4"))) == {}
    later = world.increases(at=minutes(61), pods=tuple(pods("c", 4, cpu="4")))
    assert 1 <= sum(later.values()) <= 3


def test_bad_flags_name_the_fix():
    """A limit that cannot be read says which flag it is and how it is to be written."""
    with pytest.raises(ValueError, match="--cores-total=9: give <min>:<max>"):
        World(settings={"cores_total": "9"})
