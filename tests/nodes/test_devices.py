"""Claims to devices in the node loop: what is bought for pods with claims, and what the state knows of them."""

from __future__ import annotations

import pytest
from tests.nodes.claims import claim, devices, slice_of, using, with_devices
from tests.nodes.frozen import World, group, node
from tests.work import calls_of

from kubetide.nodes.core import decode_delta, encode_delta
from kubetide.nodes.records.export import copy_state, export_state
from kubetide.objects.kinds import RESOURCE_CLAIMS


@pytest.mark.parametrize(("each", "expected"), [(1, 4), (2, 2), (3, 2), (4, 1), (8, 1)])
def test_as_many_nodes_are_bought_as_have_the_devices(each, expected):
    """Four pods with a device each: new nodes bring theirs in pools of their own; others are of no use."""
    world = World(
        pods=[using(f"p{number}") for number in range(4)],
        groups=[group("plain"), with_devices("gpu", each)],
        devices=devices(claims=[claim(f"p{number}") for number in range(4)]),
    )
    assert world.increases() == {"gpu": expected}


@pytest.mark.parametrize(
    "known",
    [
        devices(),
        devices(claims=[claim("p", count=5)]),
        devices(claims=[claim("p")], classes=()),
    ],
    ids=["no claim", "more than a node has", "no class"],
)
def test_nothing_is_bought_that_would_not_help(known):
    """New nodes do not help a missing claim or class, or a request for more devices than any new node has."""
    assert World(pods=[using("p")], groups=[with_devices("gpu", 4)], devices=known).increases() == {}


def test_devices_that_are_free_are_used_first():
    """A pod that a device waits for buys nothing; the second one does."""
    one = with_devices("gpu", 1, nodes=("n1",))
    known = devices(slices=[slice_of("n1", 1)], claims=[claim("a"), claim("b")])
    assert World(nodes=[node("n1")], pods=[using("a")], groups=[one], devices=known).increases() == {}
    world = World(nodes=[node("n1")], pods=[using("a"), using("b")], groups=[one], devices=known)
    assert world.increases() == {"gpu": 1}


def test_a_live_node_says_what_new_ones_bring():
    """The devices of a ready node of the group count, not what the cloud promised."""
    one = with_devices("gpu", 4, nodes=("n1",))
    taken = [claim(f"old{n}", device=f"gpu-{n}", on="n1", user=f"old{n}") for n in range(2)]
    old = [using(f"old{n}", node="n1") for n in range(2)]
    fresh = [using(f"p{n}") for n in range(4)]
    known = devices(slices=[slice_of("n1", 2)], claims=[*taken, *(claim(f"p{n}") for n in range(4))])
    world = World(nodes=[node("n1")], pods=[*old, *fresh], groups=[one], devices=known)
    assert world.increases() == {"gpu": 2}
    assert world.state.memory.templates["gpu"].slices == (slice_of("n1", 2),)


def test_what_pods_of_every_node_have_is_not_promised():
    """A DaemonSet's pod has a device on each node: a new node has one less for others."""
    agent = using("agent", kind="DaemonSet", of="agent", node="n1")
    one = group("gpu", nodes=("n1",))
    known = devices(
        slices=[slice_of("n1", 2)],
        claims=[claim("agent", device="gpu-0", on="n1", user="agent"), claim("p", count=2)],
    )
    world = World(nodes=[node("n1")], pods=[agent, using("p")], groups=[one], devices=known)
    assert world.increases() == {}
    (left,) = world.state.memory.templates["gpu"].slices
    assert [one.name for one in left.spec.devices] == ["gpu-1"]


def test_pods_whose_claims_ask_for_the_same_share_the_search_for_devices():
    """Nodes whose devices are taken are not searched anew for each pod: with six times the pods less than eight times the work."""
    calls = []
    for pods in (40, 240):
        world = World(
            pods=[using(f"p{number:03}") for number in range(pods)],
            groups=[with_devices("gpu", 2, maximum=200)],
            devices=devices(claims=[claim(f"p{number:03}") for number in range(pods)]),
        )
        calls.append(calls_of(lambda world=world: world.increases()))
        assert world.groups["gpu"].target_size == pods // 2
    assert calls[1] < 8 * calls[0]


def test_a_full_delta_has_the_devices_of_the_state():
    """A state that is decoded from the bytes of another has its devices, and the kinds that cannot be read."""
    known = devices(slices=[slice_of("n1", 2)], claims=[claim("p", device="gpu-0", on="n1", user="p")])
    world = World(
        pods=[using("q")],
        groups=[with_devices("gpu", 1)],
        devices=known,
        unread=("deviceclasses", "csinodes"),
    )
    delta = decode_delta(encode_delta(export_state(world.state)))
    assert delta.devices == known
    assert delta.unread == ("csinodes", "deviceclasses")
    again = copy_state(world.state)
    assert export_state(again) == export_state(world.state)


def test_claims_that_cannot_be_read_are_ignored():
    """Without the right to read claims pods are evaluated as if they had none."""
    world = World(pods=[using("p")], groups=[group("plain")], devices=devices())
    world.tick(unread=(RESOURCE_CLAIMS.plural,))
    assert world.groups["plain"].target_size == 1
