"""What ``kubetide plan`` says of nodes on order."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, World, group, node, pods, replica_set

from kubetide.nodes.explain.ahead import foreseen
from kubetide.nodes.memory import Memory, ScaleUpRequest
from kubetide.nodes.state import State
from kubetide.plan.board import Intent, Workload
from kubetide.units.time import after, before, minutes


def test_nodes_are_foreseen_only_for_more_pods_than_there_are():
    """A change that takes pods away asks for no node."""
    web = Workload("default", "Deployment", "web")
    due = after(START, minutes(30))
    for replicas, said in ((4, ["4 replicas do not fit"]), (3, []), (1, [])):
        world = World(
            pods=pods("web", 3, node="n1"),
            replica_sets=[replica_set("web", 3, of="web")],
            groups=[group("g", nodes=["n1"])],
            nodes=[node("n1")],
            settings={"demand_sources": ("pending", "intents")},
            intents=(Intent(web, replicas, due, "schedules"),),
        )
        found = foreseen(world.state, START)
        assert [one.text.partition("if ")[2].partition(",")[0] for one in found] == said


def test_replicas_that_no_group_takes_are_foreseen_with_the_reason():
    """Those to come, too: who reads the plan can raise a maximum in time."""
    web = Workload("default", "Deployment", "web")
    world = World(
        pods=pods("web", 2, node="n1", cpu="1200m"),
        replica_sets=[replica_set("web", 2, of="web", cpu="1200m")],
        groups=[group("g", maximum=1, nodes=["n1"])],
        nodes=[node("n1")],
        settings={"demand_sources": ("pending", "intents")},
        intents=(Intent(web, 4, after(START, minutes(1)), "schedules"),),
    )
    world.tick()
    found = [one for one in foreseen(world.state, START) if "no node group" in one.text]
    assert [(one.subject, one.text, one.why) for one in found] == [
        (
            "Deployment default/web",
            "no node group takes 1 replica of it, there or to come",
            "1 max node group size reached",
        )
    ]


class Counted(dict):
    """Counts how often all items are gone through."""

    passes = 0

    def items(self):
        self.passes += 1
        return super().items()


def test_replica_sets_are_gone_through_once_however_many_changes_come():
    """With thousands of time tables the answer took many seconds."""
    names = [f"web-{number}" for number in range(20)]
    intents = (
        Intent(Workload("default", "Deployment", name), 4, after(START, minutes(30)), "schedules")
        for name in names
    )
    world = World(
        replica_sets=[replica_set(name, 3, of=name) for name in names],
        groups=[group("g")],
        settings={"demand_sources": ("pending", "intents")},
        intents=tuple(intents),
    )
    sets = world.state.replica_sets = Counted(world.state.replica_sets)
    assert (len(foreseen(world.state, START)), sets.passes) == (20, 1)


@pytest.mark.parametrize(
    ("nodes", "longest", "at", "said"),
    [
        (2, 7, 2, "2 more nodes have joined (asked for at 2026-03-02T07:55:00Z; the one before took 7m0s)"),
        (1, 3, 10, "1 more node has joined, or is given up (asked for at 2026-03-02T07:55:00Z; late, as the one before took 3m0s)"),
        (2, None, 10, "2 more nodes have joined, or are given up (asked for at 2026-03-02T07:55:00Z; how long its nodes take was not seen yet)"),
    ],
    ids=["expected", "late", "nothing known"],
)  # fmt: skip
def test_nodes_on_order_are_foreseen(nodes, longest, at, said):
    """At the time at which they are expected; late ones, and those of which nothing is known, when they are given up."""
    request = ScaleUpRequest(nodes, before(START, minutes(5)), after(START, minutes(10)))
    memory = Memory(scale_up_requests={"g": request})
    if longest is not None:
        memory.join_times = {"g": (minutes(longest),)}
    [coming] = foreseen(State(memory=memory), START)
    assert (coming.at, coming.subject) == (after(START, minutes(at)), "group g")
    assert f"{coming.text} ({coming.why})" == said


def test_nodes_that_have_joined_are_not_foreseen_again():
    """Of three nodes on order one has joined: two are still to come."""
    request = ScaleUpRequest(3, before(START, minutes(1)), after(START, minutes(14)))
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"], target=3)])
    world.state.memory.scale_up_requests["g"] = request
    assert [one.text for one in foreseen(world.state, START)] == ["2 more nodes have joined, or are given up"]
