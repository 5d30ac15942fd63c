"""--scale-down-simulation-timeout: removals that are not tried in time are tried in the next ticks."""

from __future__ import annotations

from functools import cache

from tests.nodes import frozen

from kubetide.nodes.scale_down.unneeded.simulation_time import PODS_IN_A_STEP
from kubetide.units.time import minutes, seconds

PODS = 100
NODES = 120
"""Their pods are looked at in three steps, and all of them are in the way: nothing owns them."""
IN_A_STEP = -(-PODS_IN_A_STEP // (PODS + 1))


@cache
def blocked():
    nodes = [frozen.node(f"n{at:03d}") for at in range(NODES)]
    [one] = frozen.pods("p", 1, cpu="1m", memory="1Mi", kind=None)
    there = [
        frozen.replace(
            one,
            metadata=frozen.replace(one.metadata, name=f"p-{at}", uid=f"uid-{at}"),
            spec=frozen.replace(one.spec, node_name=f"n{at % NODES:03d}"),
        )
        for at in range(PODS * NODES)
    ]
    return nodes, there


def world_of(step_time, **settings):
    nodes, there = blocked()
    names = [one.metadata.name for one in nodes]
    world = frozen.World(
        groups=[frozen.group("g", maximum=NODES, nodes=names)], nodes=nodes, pods=there, settings=settings
    )
    world.step_time = step_time
    return world


def steps(world):
    return [one.next_step for one in world.commands if one.next_step]


def known(world):
    """Return how many nodes are known to be blocked."""
    return len(world.state.memory.scale_down.unremovable)


def said(world):
    return [dict(one.fields) for one in world.reasons if one.code == "SimulationCut"]


def test_all_removals_are_tried_where_there_is_time():
    """Within the default of 30 seconds every node is tried, in parts, and nothing is said of it."""
    world = world_of(seconds(15))
    world.tick()
    assert steps(world) == ["scale_down", "simulate", "simulate"]
    assert (known(world), said(world)) == (NODES, [])


def test_after_the_time_the_others_wait_for_the_next_tick():
    """The first nodes are not tried again so soon, so the next tick reaches the remaining ones."""
    world = world_of(seconds(16))
    world.tick()
    left = NODES - 2 * IN_A_STEP
    assert left > 0
    assert known(world) == NODES - left
    assert world.state.tick.not_simulated == tuple(f"n{at:03d}" for at in range(NODES - left, NODES))
    assert said(world) == [{"nodes": left, "limit": "30s"}]
    world.tick(at=minutes(1))
    assert (known(world), len(said(world))) == (NODES, 1)


def test_the_flag_is_the_limit():
    """With more time the same steps reach all nodes."""
    world = world_of(seconds(16), scale_down_simulation_timeout=minutes(5))
    world.tick()
    assert (known(world), said(world)) == (NODES, [])
