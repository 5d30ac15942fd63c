"""A node counts as ready once its drivers have published the devices that its group is known for."""

from __future__ import annotations

from msgspec.structs import replace
from tests.nodes.claims import claim, devices, piece_of, slice_of, using, with_devices
from tests.nodes.frozen import START, World, group, node, template

from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.nodes.records.delta import Delta, Gone
from kubetide.ports.cloud import Instance
from kubetide.units.time import after, format_rfc3339, minutes


def at(since):
    return format_rfc3339(after(START, since))


def test_a_node_whose_driver_is_late_is_not_ready():
    """Until the node has its slices it is on its way: it is not bought for again."""
    world = World(pods=[using("p")], groups=[with_devices("gpu", 1)], devices=devices(claims=[claim("p")]))
    assert world.increases() == {"gpu": 1}
    world.change("gpu", instances=(Instance(provider_id="cloud:///n1"),))
    assert world.increases(at=minutes(1), nodes=(node("n1", created=at(minutes(1))),)) == {}
    assert world.state.health("n1").unready == "ResourceUnready"
    assert world.increases(at=minutes(2), devices=DeviceChanges(slices=(slice_of("n1", 1),))) == {}
    assert world.state.health("n1").unready == ""


def test_a_node_with_a_part_of_its_pool_is_not_ready():
    """The scheduler gives no device of a pool before all its slices are there: nothing is bought in the meantime."""
    pieces = tuple(piece_of("template", number, of=2) for number in range(2))
    gpu = group("gpu", made=replace(template(), slices=pieces))
    known = devices(claims=[claim("p"), claim("q")])
    world = World(pods=[using("p"), using("q")], groups=[gpu], devices=known)
    assert world.increases() == {"gpu": 1}
    world.change("gpu", instances=(Instance(provider_id="cloud:///n1"),))
    first, second = (DeviceChanges(slices=(piece_of("n1", number, of=2),)) for number in range(2))
    came = (node("n1", created=at(minutes(1))),)
    assert world.increases(at=minutes(1), nodes=came, devices=first) == {}
    assert world.state.health("n1").unready == "ResourceUnready"
    assert world.increases(at=minutes(2), devices=second) == {}
    assert world.state.health("n1").unready == ""


def test_a_node_without_one_of_two_pools_is_not_ready():
    """A driver with a pool for each of its devices has published one of two."""
    pools = tuple(
        replace(one, spec=replace(one.spec, pool=replace(one.spec.pool, name=f"pool-{number}")))
        for number, one in enumerate(piece_of("n1", number, of=1) for number in range(2))
    )
    gpu = group("gpu", made=replace(template(), slices=pools), nodes=("n1",))
    world = World(nodes=[node("n1")], pods=[using("p")], groups=[gpu], devices=devices(slices=pools[:1]))
    assert world.state.health("n1").unready == "ResourceUnready"
    world.state.apply(Delta(devices=DeviceChanges(slices=pools[1:])))
    assert world.state.health("n1").unready == ""


def test_a_driver_that_is_taken_away_makes_no_node_unready():
    """Once nobody publishes slices of a driver, nodes are no longer expected to have any."""
    one = group("gpu", nodes=("n1",))
    known = devices(slices=[slice_of("n1", 2)], claims=[claim("p")])
    world = World(nodes=[node("n1")], pods=[using("p")], groups=[one], devices=known)
    world.tick()
    deleted = Gone(devices=(("resourceslices", "", "n1-gpu"),))
    world.state.apply(Delta(gone=deleted, devices=DeviceChanges()))
    assert world.state.health("n1").unready == ""
    world.tick(at=minutes(1))
    assert world.state.memory.templates["gpu"].slices == ()


def test_devices_are_expected_of_a_group_that_had_them_before():
    """After the last node and its driver are deleted the next node counts as on its way until it has its slices."""
    one = group("gpu", nodes=("n1",))
    known = devices(slices=[slice_of("n1", 1)], claims=[claim("p")])
    world = World(nodes=[node("n1")], groups=[one], devices=known)
    world.tick()
    world.change("gpu", instances=(), target_size=0)
    deleted = Gone(nodes=("n1",), devices=(("resourceslices", "", "n1-gpu"),))
    world.state.apply(Delta(gone=deleted, devices=DeviceChanges()))
    assert world.increases(at=minutes(1), pods=(using("p"),)) == {"gpu": 1}
    world.change("gpu", instances=(Instance(provider_id="cloud:///n2"),))
    assert world.increases(at=minutes(2), nodes=(node("n2", created=at(minutes(2))),)) == {}
    assert world.state.health("n2").unready == "ResourceUnready"
    assert world.increases(at=minutes(4), devices=DeviceChanges(slices=(slice_of("n2", 1),))) == {}
    assert world.state.health("n2").unready == ""
