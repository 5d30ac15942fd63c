"""Machines that a group lists and counts, and whose nodes the provider puts in no group: they stay, and are missed by nobody."""

from __future__ import annotations

import yaml
from tests.nodes.frozen import World, group, node, pods

from kubetide.nodes.decision import AddTaint, DecreaseTarget, DeleteInstances
from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.registry.cluster_state import upcoming_nodes
from kubetide.ports.cloud import GroupOptions, Instance, InstanceError
from kubetide.units.time import minutes, seconds


def left_alone(name):
    return Instance(provider_id=f"cloud:///{name}", managed=False)


def doomed(actions):
    return [one.node for one in actions if isinstance(one, AddTaint) and one.key == TO_BE_DELETED]


def test_its_node_is_never_removed():
    """Of two idle nodes of a group that may be empty only the other one goes, and the explanation says why."""
    world = World(
        nodes=[node("mine"), node("protected")],
        groups=[group("g", nodes=["mine"], instances=[left_alone("protected")])],
    )
    world.tick()
    assert doomed(world.tick(at=minutes(11))) == ["mine"]
    assert doomed(world.tick(at=minutes(60))) == []
    said = explain_node(world.state, "protected", world.now)
    assert said.reason == "NotAutoscaled"
    assert said.sentence.startswith("Group g counts its machine, but its provider puts")


def test_a_node_that_becomes_one_is_not_kept_in_its_former_group():
    """A machine that is gone from a list keeps its group while its node exists; one that is left alone has none."""
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"])])
    world.tick()
    assert world.state.group_of("n1") == "g"
    world.change("g", instances=(left_alone("n1"),))
    world.tick(at=minutes(1))
    assert world.state.group_of("n1") is None
    world.change("g", instances=(Instance(provider_id="cloud:///n1"),))
    world.tick(at=minutes(2))
    assert world.state.group_of("n1") == "g"


def test_the_group_misses_nothing():
    """Its node counts against the target: no node is upcoming in its place, and the target is not lowered for it."""
    world = World(
        nodes=[node("n1"), node("n2"), node("n3"), node("n4")],
        pods=[*pods("full", 4, cpu="4", node="n1"), *pods("p", 2, cpu="4")],
        groups=[group("g", minimum=4, nodes=["n1"], instances=[left_alone(f"n{at}") for at in (2, 3, 4)])],
        settings={"ok_total_unready_count": 0, "max_total_unready_percentage": 10},
    )
    world.tick()
    view = world.state.view.groups["g"]
    assert view.healthy
    assert view.counts.left_alone == 3
    assert yaml.safe_load(world.status)["nodeGroups"][0]["health"]["nodeCounts"]["registered"]["total"] == 1
    for at in range(1, 40):
        actions = world.tick(at=minutes(at))
        assert not [one for one in actions if isinstance(one, DecreaseTarget) and one.why == "size"]


def test_a_scale_up_beside_it_ends_when_its_nodes_have_joined():
    """The request is fulfilled by what was asked for, and does not time out."""
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[
            *pods("full", 2, cpu="2", node="n1"),
            *pods("also", 2, cpu="2", node="n2"),
            *pods("p", 1, cpu="4"),
        ],
        groups=[group("g", nodes=["n1"], instances=[left_alone("n2")])],
    )
    assert world.increases() == {"g": 1}
    world.tick(at=seconds(10))
    view = world.state.view.groups["g"]
    assert upcoming_nodes(world.state, view, world.now) == 1
    world.change("g", instances=(*world.groups["g"].instances, Instance(provider_id="cloud:///n3")))
    world.tick(at=minutes(2), nodes=(node("n3"),))
    assert "g" not in world.state.memory.scale_up_requests
    assert "g" not in world.state.memory.backoff


def test_one_without_a_node_is_not_removed_as_overdue():
    """Of two machines that never joined only the other one is deleted; a node that is to come stands for each."""
    late = Instance(provider_id="cloud:///late")
    world = World(groups=[group("g", instances=[late, left_alone("protected")])])
    world.tick()
    assert len(world.state.view.groups["g"].counts.unregistered) == 2
    deleted = [one for one in world.tick(at=minutes(16)) if isinstance(one, DeleteInstances)]
    assert [one.provider_ids for one in deleted] == [("cloud:///late",)]


def test_a_group_that_goes_as_a_whole_leaves_it():
    """A machine that fails empties such a group of all others."""
    error = InstanceError(error_class="OutOfResource", error_code="STOCKOUT")
    failed = Instance(provider_id="cloud:///failed", state="Creating", error=error)
    options = GroupOptions(zero_or_max_node_scaling=True)
    machines = [failed, Instance(provider_id="cloud:///late"), left_alone("protected")]
    world = World(groups=[group("g", maximum=3, instances=machines, options=options)])
    deleted = [one for one in world.tick() if isinstance(one, DeleteInstances)]
    assert [one.provider_ids for one in deleted] == [("cloud:///failed", "cloud:///late")]
