"""Soft taints that make the scheduler fill fuller nodes first."""

from __future__ import annotations

import pytest

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.facts.nodes import FILL_LATER, template_taints
from kubetide.nodes.scale_down.soft_taints import startup_cleanup
from kubetide.nodes.settings import Settings


def fleet(world, *used, **settings):
    """A node of four cores for each number of cores that pods on it request."""
    made = world(steer_pods_to_fuller_nodes=True, **settings).add_group("a")
    for index, cores in enumerate(used):
        made.add_node(f"a-{index}").add_pod(f"p-{index}", f"a-{index}", cpu=str(cores))
    return made


def levels(made):
    """How many of these taints each node has."""
    return [
        sum(taint.key in FILL_LATER for taint in made.nodes[name].spec.taints or ())
        for name in sorted(made.nodes)
    ]


@pytest.mark.parametrize(
    ("cores", "count"), [("3500m", 0), ("3", 0), ("2900m", 1), ("1900m", 2), ("900m", 3)]
)
def test_the_emptier_a_node_is_the_more_taints_it_has(world, cores, count):
    """One for each of three quarters, a half and a quarter that its pods fall short of."""
    made = fleet(world, cores)
    made.loop()
    assert levels(made) == [count]


def test_without_the_flag_no_node_is_steered(world):
    """The default is upstream's."""
    made = world().add_group("a").add_node("a-0").add_pod("p", "a-0", cpu="100m")
    made.loop()
    assert levels(made) == [0]


def test_a_taint_goes_when_the_node_is_clearly_fuller(world):
    """A node at the share retains its taint, as a small pod would toggle it; one well above loses it."""
    made = fleet(world, "1900m")
    made.loop()
    assert levels(made) == [2]
    made.add_pod("small", "a-0", cpu="200m").loop()
    assert levels(made) == [2]
    made.add_pod("more", "a-0", cpu="200m").loop()
    assert levels(made) == [1]


def test_changes_share_the_bound_of_soft_taints(world):
    """The order uses the rest of --max-bulk-soft-taint-count; with 0 there is none."""
    made = fleet(world, "2900m", "2900m", "2900m", max_bulk_soft_taint_count=2)
    made.loop()
    assert sum(levels(made)) == 2
    made.loop()
    assert levels(made) == [1, 1, 1]
    none = fleet(world, "2900m", max_bulk_soft_taint_count=0)
    none.loop()
    assert levels(none) == [0]


@pytest.mark.parametrize(
    "settings", [{}, {"steer_pods_to_fuller_nodes": True, "max_bulk_soft_taint_count": 0}]
)
def test_a_process_without_the_flag_takes_the_taints_off(world, settings):
    """At its first tick; with the flag they stay."""
    made = fleet(world, "1900m")
    made.loop()
    made.sync("update")
    assert startup_cleanup(made.state, made.now) == ()
    made.state.settings = Settings(**settings)
    found = startup_cleanup(made.state, made.now)
    assert [(one.node, one.key) for one in found] == [("a-0", key) for key in FILL_LATER[:2]]


def test_a_new_node_has_none_of_the_taints(world):
    """Templates are made without them, though they are copied from nodes that have some."""
    made = fleet(world, "100m")
    made.loop()
    assert template_taints(made.nodes["a-0"].spec.taints, Settings()) == ()


def test_a_node_that_is_being_deleted_is_left_alone(world):
    """Its taints are those of its deletion."""
    made = fleet(world, "100m", "3900m").add_node("a-2")
    for _ in range(20):
        made.loop()
    assert made.tainted("ToBeDeletedByClusterAutoscaler")
    before = levels(made)
    made.loop()
    assert levels(made) == before


def test_a_node_says_that_fuller_ones_are_filled_first(world):
    """By its taints, with the share that it falls short of."""
    made = fleet(world, "1900m", "3900m")
    made.loop()
    made.sync("update")
    reported = explain_node(made.state, "a-0", made.now).filled
    assert reported.startswith(
        "after fuller nodes, as its pods ask for less than 50% of it (2 of 3 soft taints"
    )
    assert explain_node(made.state, "a-1", made.now).filled == ""
