"""Facts cached of nodes and groups between ticks end where the time or the cloud changes something."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, World, group, node

from kubetide.ports.cloud import Instance
from kubetide.units.time import after, before, format_rfc3339, minutes, seconds


def counts(world):
    return world.state.view.total


def test_a_node_that_never_starts_counts_as_unready_by_the_time_alone():
    """Nothing but the time passes: at first the node is starting, after --max-node-startup-time it is unready."""
    young = node("n1", ready=False, created=format_rfc3339(START))
    world = World(nodes=[node("n0"), young], groups=[group("g", nodes=("n0", "n1"))])
    world.tick()
    assert (counts(world).not_started, counts(world).unready) == (["n1"], 0)
    world.tick(at=minutes(16))
    assert (counts(world).not_started, counts(world).unready) == ([], 1)


def test_a_node_becomes_a_template_by_the_time_alone():
    """A node that has been ready for less than a minute is none yet; a minute later, with nothing changed, it is."""
    fresh = node("n0", created=format_rfc3339(before(START, seconds(30))))
    world = World(nodes=[fresh], groups=[group("g", nodes=("n0",))])
    world.tick()
    assert "g" not in world.state.memory.templates
    world.tick(at=minutes(2))
    assert world.state.memory.templates["g"].from_node == "n0"


@pytest.mark.parametrize("again", [1, 3])
def test_a_machine_without_a_node_is_seen_after_quiet_ticks(again):
    """After ticks in which all machines had nodes, one that comes without is noted with the time at which it came."""
    world = World(nodes=[node("n0")], groups=[group("g", nodes=("n0",))])
    for at in range(again):
        world.tick(at=seconds(10 * at))
    world.change("g", target_size=2, instances=(Instance("cloud:///n0"), Instance("cloud:///n1")))
    world.tick(at=minutes(1))
    assert world.state.memory.unregistered_since == {"cloud:///n1": after(START, minutes(1))}
    assert counts(world).unregistered == ["cloud:///n1"]
    world.tick(at=minutes(2))
    assert counts(world).unregistered == ["cloud:///n1"]
