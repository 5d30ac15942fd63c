"""The node loop's part of the page of ``kubetide status``."""

from __future__ import annotations

from tests.nodes.frozen import World, group, node, pod

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.units.time import seconds


def tables(world):
    return {table.title: table.rows for table in OVERVIEW.tables(world, world.now)}


def test_an_unneeded_node_is_listed_with_the_time_from_which_it_may_go():
    """A node that waits for its time to be over is on the page, though the loop counts it as one that stays."""
    world = World(nodes=[node("n1"), node("n2")], groups=[group("g", nodes=["n1", "n2"])])
    world.tick()
    world.tick(at=seconds(10))
    rows = tables(world)["nodes that go or are blocked"]
    assert [row[:4] for row in rows] == [
        (name, "g", "unneeded", "may go from 2026-03-02T08:10:00Z on") for name in ("n1", "n2")
    ]


def test_an_unneeded_node_of_the_minimum_does_not_go_by_time():
    """A node that only the group's minimum keeps names that, and what to do, in place of a time."""
    world = World(nodes=[node("n1")], groups=[group("g", minimum=1, nodes=["n1"])])
    world.tick()
    world.tick(at=seconds(700))
    assert tables(world)["nodes that go or are blocked"] == ()
    found = explain_node(world.state, "n1", world.now)
    assert (found.way_out, found.goes) == ("lower the group's minimum at the cloud", "")


def test_pods_beyond_the_explained_ones_name_the_question():
    """The page explains three workloads; of the others it has the command that answers."""
    world = World(pods=[pod(f"p{at}", cpu="64", of=f"w{at}") for at in range(5)], groups=[group("g")])
    world.tick()
    why = [row[2] for row in tables(world)["waiting pods"]]
    assert all(text.startswith("No group takes it.") for text in why[:3])
    assert why[3:] == ["ask: kubetide explain pod default/p3", "ask: kubetide explain pod default/p4"]
