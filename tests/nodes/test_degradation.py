"""Graceful degradation: a loop that cannot look at all pods in time goes on with those that it has reached."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, World, group, node, pods

from kubetide.nodes.core import decode_delta, encode_delta
from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.scale_up.pending.degradation import PART
from kubetide.nodes.state import Delta
from kubetide.units.time import after, format_rfc3339, minutes, seconds

MORE = 300
ON = {"enable_graceful_degradation": True, "max_nodes_per_scaleup": 2}


def crowd(step_time, **settings):
    """Return a world with more pods without a place than one step handles, and steps that take that long."""
    world = World(
        nodes=[node("n0")],
        pods=pods("p", PART + MORE, cpu="3"),
        groups=[group("g", maximum=1000, nodes=("n0",))],
        settings=settings,
    )
    world.step_time = step_time
    return world


def steps(world):
    """Return the steps that follow one another in the last tick, after the first."""
    return [one.next_step for one in world.commands if one.next_step]


def said(world):
    return {one.code: dict(one.fields) for one in world.reasons}


def test_all_pods_are_looked_at_where_there_is_time():
    """Steps that take seconds reach no limit: every pod is evaluated, in two parts, without a message."""
    world = crowd(seconds(30), **ON)
    assert world.increases() == {"g": 2}
    assert steps(world) == ["place", "scale_down"]
    assert world.state.tick.demand.unprocessed == 0
    assert "PodsLeftOut" not in said(world)
    assert world.messages("GracefulDegradationStarted") == []


def test_pods_that_were_not_reached_are_left_out():
    """After --pending-pods-batching-timeout the others are bought for; the rest are neither placed nor bought for."""
    world = crowd(minutes(5), **ON)
    assert world.increases() == {"g": 2}
    demand = world.state.tick.demand
    assert demand.unprocessed == MORE
    assert len(demand.placed) + len(demand.pods) == PART
    assert said(world)["PodsLeftOut"] == {"pods": MORE}
    assert len(world.messages("GracefulDegradationStarted")) == 1


@pytest.mark.parametrize("settings", [{}, {**ON, "pending_pods_batching_timeout": minutes(6)}])
def test_without_the_flag_or_with_more_time_no_pod_is_left_out(settings):
    """The flag and its limit decide, not how long the loop takes."""
    world = crowd(minutes(5), **settings)
    world.tick()
    assert world.state.tick.demand.unprocessed == 0


def test_every_fourth_loop_is_for_scale_down():
    """While pods are left out, scale-down waits for the fourth loop, which buys nothing; then all goes on as before."""
    world = crowd(minutes(5), **ON)
    bought, downs = [], []
    for loop in range(5):
        actions = world.tick(at=seconds(10 * loop))
        bought.append(any(isinstance(one, IncreaseSize) for one in actions))
        downs.append("scale_down" in steps(world))
    assert bought == [True, True, True, False, True]
    assert downs == [False, False, False, True, False]
    world.step_time = seconds(0)
    world.tick(at=seconds(60))
    assert len(world.messages("GracefulDegradationStopped")) == 1
    assert "scale_down" in steps(world)


@pytest.mark.parametrize("maximum", [0, 1])
def test_the_loop_for_scale_down_makes_the_checks_before_a_scale_up_too(maximum):
    """It reports that there are as many nodes as there may be; else pods that are all new hold scale-down."""
    world = crowd(minutes(5), max_nodes_total=maximum, **ON)
    for loop in range(3):
        world.tick(at=seconds(10 * loop))
    world.reasons = []
    new = pods("p", PART + MORE, cpu="3", created=format_rfc3339(after(START, seconds(29))))
    world.tick(at=seconds(30), pods=tuple(new))
    assert "ScaleUpLeftOut" in said(world)
    assert len(world.messages("MaxNodesTotalReached")) == maximum
    assert ("ScaleDownInCooldown" in said(world)) is not bool(maximum)


def test_the_part_step_reads_back_from_a_record():
    """The record has the time that the tick has taken, so a replay leaves out the same pods."""
    delta = Delta(step="place", elapsed=minutes(5))
    assert decode_delta(encode_delta(delta)) == delta
