"""ReplicationControllers: read from the first pod or buffer on that has one, and asked by the drain rules."""

from __future__ import annotations

import asyncio

from tests.nodes.frozen import START, World, group, node, pod

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud
from kubetide.nodes.controller.gather import Gatherer
from kubetide.nodes.records.export import export_state
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Gone, State
from kubetide.objects.kinds import CAPACITY_BUFFERS, PODS, REPLICATION_CONTROLLERS, STORED_KINDS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.workload import ReplicationController, ReplicationControllerSpec
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import seconds
from kubetide.watching import Caches

OWNER = {
    "apiVersion": "v1",
    "kind": "ReplicationController",
    "name": "old",
    "uid": "uid-old",
    "controller": True,
}
EMPTY = {"metadata": {"name": "old"}, "spec": {"replicas": 0, "template": {"spec": {"containers": []}}}}
POD = {"containers": [{"name": "main", "image": "app:1"}]}


def controller(replicas):
    meta = ObjectMeta(namespace="default", name="old")
    return ReplicationController(metadata=meta, spec=ReplicationControllerSpec(replicas=replicas))


def blocking(world, **changes):
    world.tick(**changes)
    status = world.state.memory.scale_down.status
    return {one.node: one.blocking_reason for one in status.unremovable if one.blocking_reason}


def test_a_pod_whose_controller_was_deleted_blocks_its_node():
    """Until controllers are read one is taken to exist; then it must exist, and with enough replicas."""
    names = ["n0", "n1"]
    world = World(
        nodes=[node(name) for name in names],
        pods=[pod("x", node="n0", of="old", kind="ReplicationController"), pod("y", cpu="3", node="n1")],
        groups=[group("g", nodes=names)],
        replica_sets=(),
        settings={"min_replica_count": 2, "skip_nodes_with_custom_controller_pods": True},
    )
    found = [blocking(world).get("n0")]
    for at, changes in enumerate(
        (
            {"replication_controllers": ()},
            {"replication_controllers": (controller(1),)},
            {"replication_controllers": (controller(2),)},
        ),
        start=1,
    ):
        world.state.memory.scale_down.unremovable.clear()
        found.append(blocking(world, at=seconds(10 * at), **changes).get("n0"))
    assert found == [None, "ControllerNotFound", "MinReplicasReached", None]
    again = State()
    again.apply(export_state(world.state), full=True)
    assert again.replication_controllers == world.state.replication_controllers
    world.state.apply(without_controllers(world))
    assert world.state.replication_controllers == {}


def without_controllers(world):
    exported = export_state(world.state)
    return type(exported)(gone=Gone(replication_controllers=(("default", "old"),)))


def test_they_are_read_from_the_first_pod_on_that_has_one():
    """Where no pod has one nothing is asked; a cluster that does not serve them goes without."""

    async def main(clock, kinds, read):
        store = Store(kinds)
        cluster = EmbeddedCluster(store, clock)
        state, caches = State(), Caches(cluster, clock)
        gatherer = Gatherer(
            cluster, EmbeddedCloud(cluster, clock, seed=1, groups=()), clock, None, state, caches
        )
        task = asyncio.create_task(caches.run())
        await clock.sleep(seconds(1))
        state.apply(await gatherer.begin())
        gatherer.finished()
        assert state.replication_controllers is None
        meta = {"name": "x", "namespace": "default", "uid": "u", "ownerReferences": [OWNER]}
        store.put(PODS, ("default", "x"), {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD})
        await clock.sleep(seconds(1))
        state.apply(await gatherer.begin())
        assert (state.replication_controllers is not None) == read
        task.cancel()

    run_virtual(lambda clock: main(clock, (*STORED_KINDS, REPLICATION_CONTROLLERS), True), start=START)
    run_virtual(lambda clock: main(clock, STORED_KINDS, False), start=START)


def test_they_are_read_for_a_buffer_of_one():
    """A CapacityBuffer of one that has no pods yet is ready in the tick in which it is first seen."""

    async def main(clock):
        store = Store((*STORED_KINDS, REPLICATION_CONTROLLERS, CAPACITY_BUFFERS))
        cluster = EmbeddedCluster(store, clock)
        state, caches = State(), Caches(cluster, clock)
        state.settings = Settings(capacity_buffer_controller_enabled=True)
        gatherer = Gatherer(
            cluster, EmbeddedCloud(cluster, clock, seed=1, groups=()), clock, None, state, caches
        )
        task = asyncio.create_task(caches.run())
        await cluster.create(REPLICATION_CONTROLLERS, EMPTY, namespace="default")
        reference = {"kind": "ReplicationController", "name": "old", "apiGroup": "core"}
        spare = {"metadata": {"name": "spare"}, "spec": {"scalableRef": reference, "replicas": 1}}
        await cluster.create(CAPACITY_BUFFERS, spare, namespace="default")
        await clock.sleep(seconds(1))
        state.apply(await gatherer.begin())
        assert len(state.capacity.buffers) == len(state.replication_controllers) == 1
        task.cancel()

    run_virtual(main, start=START)
