"""--max-binpacking-time: groups are evaluated until the time is over, and the choice is among the options so far."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, node, pod, pods, template

from kubetide.nodes.core import decode_delta, encode_delta
from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.scale_up.choosing.choice import GROUPS_IN_A_STEP
from kubetide.nodes.scale_up.choosing.options import KINDS_IN_A_STEP
from kubetide.nodes.state import Delta
from kubetide.units.time import minutes, seconds

MORE = 10
GROUPS = 2 * GROUPS_IN_A_STEP + MORE


def many(step_time, **settings):
    """Return a world with more groups than two steps evaluate, and steps that take that long."""
    groups = [group(f"g{at:03d}", maximum=10) for at in range(GROUPS)]
    world = World(nodes=[node("n0")], pods=pods("p", 6, cpu="3"), groups=groups, settings=settings)
    world.step_time = step_time
    return world


def steps(world):
    return [one.next_step for one in world.commands if one.next_step]


def options(world):
    return sum(one.code == "Option" for one in world.reasons)


def said(world):
    return [dict(one.fields) for one in world.reasons if one.code == "PackingCut"]


def test_all_groups_are_asked_where_there_is_time():
    """Within the default of five minutes every group is evaluated, in parts, without a message."""
    world = many(seconds(30))
    assert sum(world.increases().values()) == 5
    assert steps(world) == ["pack", "pack", "scale_down"]
    assert (options(world), said(world)) == (GROUPS, [])


def test_groups_that_were_not_reached_are_left_out():
    """After the time the choice is among the options of the groups that were asked."""
    world = many(minutes(3))
    [grown] = world.increases()
    assert grown < f"g{2 * GROUPS_IN_A_STEP:03d}"
    assert steps(world) == ["pack", "pack", "scale_down"]
    assert options(world) == 2 * GROUPS_IN_A_STEP
    assert said(world) == [{"groups": MORE, "limit": "5m0s"}]


@pytest.mark.parametrize("limit", [minutes(7), minutes(60)])
def test_the_flag_is_the_limit(limit):
    """With more time the same steps reach all groups."""
    world = many(minutes(3), max_binpacking_time=limit)
    assert world.increases()
    assert (options(world), said(world)) == (GROUPS, [])


def test_parts_change_no_choice():
    """Asked in parts or at once, the groups give the same options, and one of them is chosen alike."""
    grown = []
    for asked in (GROUPS, GROUPS_IN_A_STEP):
        world = many(seconds(1), expander="least-nodes")
        world.change("g010", template=template(cpu="7"))
        for name in list(world.groups)[asked:]:
            world.change(name, max_size=0)
        grown.append(world.increases())
        assert ("pack" in steps(world)) == (asked == GROUPS)
    assert grown == [{"g010": 3}] * 2


def test_many_kinds_of_pods_are_asked_about_in_more_steps():
    """Each step estimates a bounded number of kinds over all of its groups, so that no step takes seconds."""
    kinds = KINDS_IN_A_STEP // 4
    world = World(
        nodes=[node("n0", cpu="500m")],
        pods=[pod(f"p{at:03d}", cpu=f"{1000 + at}m") for at in range(kinds)],
        groups=[group(f"g{at}", maximum=1000) for at in range(10)],
    )
    assert sum(world.increases().values()) > kinds // 4
    assert steps(world) == ["pack", "pack", "scale_down"]
    assert (options(world), said(world)) == (10, [])


def test_several_increases_a_tick_are_asked_in_parts_too():
    """With --salvo-scale-up the remaining pods are evaluated again, part by part."""
    world = many(seconds(1), salvo_scale_up=True, max_nodes_per_scaleup=2)
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == 5
    assert steps(world).count("pack") == 2 * 3


def test_the_step_reads_back_from_a_record():
    """The record has the time that the tick has taken, so a replay leaves out the same groups."""
    delta = Delta(step="pack", elapsed=minutes(5))
    assert decode_delta(encode_delta(delta)) == delta
