"""Several increases a loop, skipped groups that are asked, zones on the way down, turns of a drain."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, World, group, node, pod, pods, template

from kubetide.nodes.decision import AddTaint
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.scale_down.deletion.evictions import turn_of
from kubetide.nodes.settings import Settings, drain_turns, parse_drain_turns
from kubetide.units.time import minutes

ZONE = "topology.kubernetes.io/zone"


def in_pools():
    """Return pods of two kinds; only one group takes each kind."""
    kinds = {"a": "x", "b": "y"}
    groups = [group(name, made=template(labels={"pool": name})) for name in kinds]
    demand = [
        one
        for name, of in kinds.items()
        for one in pods(of, 2, cpu="3", of=of, spec={"nodeSelector": {"pool": name}})
    ]
    return groups, demand


@pytest.mark.parametrize(("salvo", "grown"), [(False, 1), (True, 2)])
def test_a_salvo_serves_what_the_first_increase_leaves(salvo, grown):
    """One loop buys for both kinds of pods with --salvo-scale-up, for one without, and places each pod once."""
    groups, demand = in_pools()
    world = World(pods=demand, groups=groups, settings={"salvo_scale_up": salvo})
    found = world.increases()
    assert len(found) == grown
    assert set(found.values()) == {2}
    assert len(world.messages("TriggeredScaleUp")) == 2 * grown


@pytest.mark.parametrize(("filtered", "grown"), [(0, 1), (2, 2)])
def test_a_salvo_has_its_budget_from_the_first_increase_on(filtered, grown):
    """The time before it, here two minutes or none until the first step, is not counted."""
    groups, demand = in_pools()
    world = World(pods=demand, groups=groups, settings={"salvo_scale_up": True})
    world.step_time = minutes(2)
    assert len(world.increases(elapsed=minutes(filtered))) == grown


def test_a_salvo_goes_on_after_nodes_that_are_full():
    """Large pods come first to the nodes that were bought for them, so that small ones leave them their place."""
    demand = [
        *pods("a", 5, cpu="1", of="small", spec={"nodeSelector": {"pool": "a"}}),
        *pods("z", 2, cpu="3", of="large", spec={"nodeSelector": {"pool": "a"}}),
        pod("b", cpu="3", of="b", spec={"nodeSelector": {"pool": "b"}}),
    ]
    groups = [group(name, made=template(labels={"pool": name})) for name in ("a", "b")]
    settings = {"salvo_scale_up": True, "expander": "most-pods"}
    world = World(pods=demand, groups=groups, settings=settings)
    assert world.increases() == {"a": 3, "b": 1}


def test_a_salvo_obeys_the_limit_of_nodes():
    """Nodes of the first increase count against --max-nodes-total in the second."""
    groups, demand = in_pools()
    world = World(pods=demand, groups=groups, settings={"salvo_scale_up": True, "max_nodes_total": 3})
    assert sorted(world.increases().values()) == [1, 2]


@pytest.mark.parametrize(
    ("asked", "said"), [(False, "1 max node group size reached"), (True, "1 Insufficient cpu")]
)
def test_a_skipped_group_gives_the_true_reason(asked, said):
    """Where skipped groups are evaluated, a pod that no node of a full group would take gets that reason."""
    world = World(
        pods=[pod("p", cpu="30")],
        groups=[group("g", maximum=0)],
        settings={"scaleup_simulation_for_skipped_node_groups_enabled": asked},
    )
    assert world.increases() == {}
    assert world.messages("NotTriggerScaleUp") == [f"pod didn't trigger scale-up: {said}"]


def zones(balanced):
    """Four empty nodes in one zone, two in another; two may go at a time."""
    names = {"a": ["a1", "a2"], "b": ["b1", "b2", "b3", "b4"]}
    labels = {name: {ZONE: name} for name in names}
    return World(
        nodes=[node(one, labels=labels[name]) for name, there in names.items() for one in there],
        groups=[
            group(name, made=template(labels=labels[name]), nodes=there) for name, there in names.items()
        ],
        settings={
            "balance_scale_down": balanced,
            "scale_down_unneeded_time": minutes(1),
            "max_scale_down_parallelism": 2,
        },
    )


@pytest.mark.parametrize(("balanced", "drained"), [(False, ["a1", "a2"]), (True, ["b1", "b2"])])
def test_the_larger_zone_gives_nodes_back_first(balanced, drained):
    """By name a whole zone would go; balanced, both zones are left with two nodes."""
    world = zones(balanced)
    world.tick()
    world.tick(at=minutes(2))
    taints = [
        one.node
        for commands in world.commands
        for one in commands.actions
        if isinstance(one, AddTaint) and one.key == TO_BE_DELETED
    ]
    assert sorted(taints) == drained


def test_why_groups_are_not_balanced_is_said():
    """The explanation of a group names similar groups, and how the others differ from it."""
    groups = [
        group("a", made=template(labels={ZONE: "a"})),
        group("b", made=template(labels={ZONE: "b"})),
        group("big", made=template(cpu="8")),
        group("team", made=template(labels={"team": "x"})),
    ]
    world = World(groups=groups, settings={"balance_similar_node_groups": True})
    world.tick()
    assert explain_group(world.state, "a", START).balance == (
        "balanced with b",
        "not similar to big: capacity cpu is 4 here and 8 there",
        "not similar to team: label team is none here and x there",
    )


@pytest.mark.parametrize(
    ("priority", "turn"), [(-5, 0), (0, 0), (999, 0), (1000, 1), (1500, 1), (2000, 2), (9000, 2), (None, 0)]
)
def test_pods_go_in_the_turn_of_their_priority(priority, turn):
    """A pod goes with the turn at or below its priority; below the first with the first."""
    turns = drain_turns(Settings(drain_priority_config="2000:60,1000:50,0:40"))
    assert [one.seconds for one in turns] == [40, 50, 60]
    assert turn_of(pod("p", spec={"priority": priority}), turns) == turn


@pytest.mark.parametrize("text", ["0", "0:", "a:1", "0:-1", "0:1,", ":5"])
def test_turns_that_make_no_sense_are_refused(text):
    """The error names the flag and the form."""
    with pytest.raises(ValueError, match=r"--drain-priority-config=.*give <priority>:<seconds>"):
        parse_drain_turns(text)
