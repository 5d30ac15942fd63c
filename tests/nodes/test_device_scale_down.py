"""Scale-down with devices: how full a node is, and where pods with claims may move."""

from __future__ import annotations

import pytest
from tests.nodes.claims import claim, devices, slice_of, using
from tests.nodes.frozen import World, group, node, replica_set

from kubetide.units.time import minutes

SHORT = {"scale_down_unneeded_time": minutes(1)}


STAYS = {"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}}


def two_nodes(*, others=(), claims=(), stays=None, **settings):
    """Return a world of two nodes with a device each; the pod on the first has its device."""
    placed = [using("p", node="n1"), *others]
    return World(
        nodes=[node("n1"), node("n2", **(stays or {}))],
        pods=placed,
        groups=[group("g", nodes=("n1", "n2"))],
        replica_sets=(replica_set("web", len(placed)),),
        devices=devices(
            slices=[slice_of("n1", 1), slice_of("n2", 1)],
            claims=[claim("p", device="gpu-0", on="n1", user="p"), *claims],
        ),
        settings={**SHORT, **settings},
    )


def test_the_fullest_pool_is_a_nodes_utilization():
    """A node whose only device is in use is full, however idle its processors; one with none in use is empty."""
    world = two_nodes()
    world.tick()
    assert [*world.state.memory.scale_down.unneeded] == ["n2"]
    refused = next(one for one in world.state.memory.scale_down.status.unremovable if one.node == "n1")
    assert (refused.reason, refused.utilization) == ("NotUnderutilized", 1.0)
    assert refused.detail == "gpu.test/n1 utilization 1 is above the threshold 0.5"


@pytest.mark.parametrize("taken", [False, True])
def test_a_pod_with_a_claim_moves_where_its_devices_are_free(taken):
    """Its claim is released with it, as no other pod uses it, and is met on a node with a free device."""
    other = {"others": [using("q", node="n2")], "claims": [claim("q", device="gpu-0", on="n2", user="q")]}
    world = two_nodes(**(other if taken else {}), stays=STAYS, scale_down_utilization_threshold=1.0)
    world.tick()
    assert ("n1" in world.state.memory.scale_down.unneeded) is not taken


def test_two_pods_do_not_move_to_one_device():
    """A device that one pod of a node would have elsewhere is not there for the next."""
    known = devices(
        slices=[slice_of("n1", 2), slice_of("n2", 1)],
        claims=[claim(name, device=f"gpu-{at}", on="n1", user=name) for at, name in enumerate("pq")],
    )
    world = World(
        nodes=[node("n1"), node("n2", **STAYS)],
        pods=[using("p", node="n1"), using("q", node="n1")],
        groups=[group("g", nodes=("n1", "n2"))],
        replica_sets=(replica_set("web", 2),),
        devices=known,
        settings={**SHORT, "scale_down_utilization_threshold": 1.0},
    )
    world.tick()
    assert not world.state.memory.scale_down.unneeded
