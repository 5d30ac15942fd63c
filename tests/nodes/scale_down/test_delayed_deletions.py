"""Deletions that somebody asks to delay by annotation."""

from __future__ import annotations

from kubetide.nodes.scale_down.memory import DeleteResult
from kubetide.units.time import minutes, seconds

NOTE = {"metadata": {"annotations": {"delay-deletion.cluster-autoscaler.kubernetes.io/x": "1"}}}


def held(world, **settings):
    """Return a world in which the deletion of a-0 has just begun, which somebody asks to delay."""
    made = world(scale_down_unneeded_time=seconds(1), **settings).add_group("a").add_node("a-0", **NOTE)
    made.loop()
    made.loop()
    return made


def test_annotations_delay_the_deletion_but_not_for_ever(world):
    """A delay-deletion annotation holds the machine at most --node-deletion-delay-timeout."""
    made = held(world)
    made.settle(minutes(2) + seconds(4))
    assert made.log == []
    made.settle(seconds(1))
    assert made.log == [("delete", "a-0")]


def test_a_short_delay_ends_between_two_looks_at_annotations(world):
    """They are looked at every five seconds, and once more when the time is over."""
    made = held(world, node_deletion_delay_timeout=seconds(12))
    made.settle(seconds(16.9))
    assert made.log == []
    made.settle(seconds(0.1))
    assert made.log == [("delete", "a-0")]


def test_a_node_that_vanishes_while_annotations_hold_it_is_not_found(world):
    """The error is upstream's, and so is the event."""
    made = held(world)
    made.settle(seconds(6))
    del made.nodes["a-0"]
    made.settle(seconds(10))
    error = 'failed to get node a-0: node "a-0" not found'
    result = made.state.memory.scale_down.results["a-0"]
    assert (made.log, result) == ([], DeleteResult("NodeDeleteErrorFailedToDelete", error))
    assert made.messages()[-1] == f"failed to delete empty node: {error}"
