"""Claims and volumes in the node loop: what is bought for pods with claims, and which nodes may go."""

from __future__ import annotations

import msgspec
import pytest
from tests.nodes import live
from tests.nodes.frozen import START, World, group, node, pod, pods, replica_set, template
from tests.objects import samples

from kubetide.nodes.core import decode_delta, encode_delta
from kubetide.nodes.facts.volumes import VolumeChanges
from kubetide.nodes.records.delta import Delta
from kubetide.nodes.records.export import copy_state, export_state
from kubetide.objects.kinds import CLAIMS, PODS, STORAGE_CLASSES, VOLUME_KINDS
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds

ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
DATA = {"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}}
GROUPS = (group("a", made=template(labels={ZONE: "a"})), group("b", made=template(labels={ZONE: "b"})))


def in_zone(zone):
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def bound_in(zone):
    """A claim with a volume that only one zone reaches."""
    body = samples.claim(volumeName="v1")
    claim = {**body, "metadata": {"name": "data", "namespace": "default", "annotations": BOUND}}
    volume = samples.volume(nodeAffinity=in_zone(zone), claimRef={"namespace": "default", "name": "data"})
    return VolumeChanges(
        claims=(msgspec.convert(claim, PersistentVolumeClaim),),
        persistent_volumes=(msgspec.convert(volume, PersistentVolume),),
    )


def waiting_for(zone):
    """A claim of a class that makes volumes in one zone, once a pod has a node."""
    body = samples.claim(storageClassName="late")
    claim = {**body, "metadata": {"name": "data", "namespace": "default"}}
    late = samples.storage_class(
        "late",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}],
    )
    return VolumeChanges(
        claims=(msgspec.convert(claim, PersistentVolumeClaim),),
        storage_classes=(msgspec.convert(late, StorageClass),),
    )


@pytest.mark.parametrize("volumes", [bound_in, waiting_for])
@pytest.mark.parametrize("zone", ["a", "b"])
def test_nodes_are_bought_where_the_volume_is(volumes, zone):
    """The zone of a bound volume decides, and so does the one that a class makes volumes in."""
    world = World(pods=pods("db", 1, **DATA), groups=GROUPS, volumes=volumes(zone))
    assert world.increases() == {zone: 1}


@pytest.mark.parametrize(
    "volumes", [VolumeChanges(), bound_in("c")], ids=["no claim", "a zone without a group"]
)
def test_nothing_is_bought_that_would_not_help(volumes):
    """New nodes do not help a missing claim, or a volume that no group reaches."""
    assert World(pods=pods("db", 1, **DATA), groups=GROUPS, volumes=volumes).increases() == {}


def test_claims_that_cannot_be_read_are_passed_over():
    """Without the right to read claims pods are evaluated as if they had none; with it at once as they are."""
    world = World(pods=pods("db", 1, **DATA), groups=GROUPS, volumes=VolumeChanges())
    world.tick(unread=(CLAIMS.plural,))
    assert sum(one.target_size for one in world.groups.values()) == 1
    read = World(pods=pods("db", 1, **DATA), groups=GROUPS, volumes=VolumeChanges())
    read.tick(volumes=bound_in("b"))
    assert read.groups["b"].target_size == 1


@pytest.mark.parametrize(("zone", "goes"), [("a", True), ("b", False)])
def test_a_node_goes_only_if_its_volumes_are_reached_from_others(zone, goes):
    """A pod whose volume stays behind in another zone blocks its node."""
    nodes = [node("n1", labels={ZONE: zone}), node("n2", labels={ZONE: "a"})]
    placed = [pod("db", node="n1", **DATA), pod("busy", node="n2", cpu="3")]
    one = group("g", nodes=("n1", "n2"))
    world = World(
        nodes=nodes,
        pods=placed,
        groups=[one],
        replica_sets=(replica_set("web", 2),),
        volumes=bound_in(zone),
        settings={"scale_down_unneeded_time": minutes(1)},
    )
    world.tick()
    assert ("n1" in world.state.memory.scale_down.unneeded) is goes


def test_a_full_delta_says_as_much_as_the_state():
    """A state made of the bytes of another one evaluates claims alike, and knows what cannot be read."""
    world = World(pods=pods("db", 1, **DATA), groups=GROUPS, volumes=bound_in("a"), unread=("csinodes",))
    delta = decode_delta(encode_delta(export_state(world.state)))
    assert delta.volumes == bound_in("a")
    again = copy_state(world.state)
    assert export_state(again) == export_state(world.state)
    assert encode_delta(Delta()) == b"{}"


# ── on a cluster ──


def play(main, **options):
    async def run(clock):
        world = live.World(clock, **options)
        async with world.running():
            return await main(world, clock)

    return run_virtual(run, start=START)


async def add_pod_with_claim(world):
    await world.cluster.create(PODS, builders.pod("db", extra=DATA), namespace="default")


def test_volume_objects_are_read_once_a_pod_has_a_claim():
    """Until then volume objects are not read; then a claim that appears makes the pod worth a node."""

    async def main(world, clock):
        caches = world.caches
        await clock.sleep(seconds(30))
        assert not {one.kind for one in caches.all} & {*VOLUME_KINDS}
        await add_pod_with_claim(world)
        await clock.sleep(seconds(30))
        assert {one.kind for one in caches.all} >= {*VOLUME_KINDS}
        await world.cluster.create(
            STORAGE_CLASSES, samples.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
        )
        claim = {**samples.claim(storageClassName="late"), "metadata": {"name": "data"}}
        before = len(world.nodes)
        await world.cluster.create(CLAIMS, claim, namespace="default")
        await clock.sleep(minutes(3))
        return before, len(world.nodes)

    assert play(main) == (0, 1)


def test_a_cluster_that_refuses_volume_objects_is_served_without_them():
    """The loop goes on, the refusal leads to the role, and nodes are bought as if there were no claims."""

    async def main(world, clock):
        await add_pod_with_claim(world)
        await clock.sleep(minutes(3))
        caches = world.caches
        reported = {with_hint(caches.of(kind).last_error, ("nodes",)) for kind in VOLUME_KINDS}
        assert all(one.endswith("; ClusterRole kubetide-nodes of deploy/ grants it") for one in reported)
        assert world.controller.state.volumes.unread == tuple(kind.plural for kind in VOLUME_KINDS)
        return len(world.nodes)

    async def run(clock):
        world = live.World(clock, wrap=lambda inner: live.Refusing(inner, VOLUME_KINDS))
        async with world.running():
            return await main(world, clock)

    assert run_virtual(run, start=START) == 1
