from __future__ import annotations

import pytest
from tests.embedded.kubelet.pool_world import play

from kubetide.embedded.kubelet.resizing import Refusal, refusal
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import pod_condition

GI = 1 << 30
NODE = {"cpu": 4000, "memory": 8 * GI}


@pytest.mark.parametrize(
    ("asked", "used", "expected"),
    [
        ({"cpu": 2000}, {}, None),
        ({"cpu": 4000}, {}, None),
        ({"cpu": 2000}, {"cpu": 2000}, None),
        (
            {"cpu": 2001},
            {"cpu": 2000},
            (
                "Deferred",
                "Node didn't have enough resource: cpu, requested: 2001, used: 2000, capacity: 4000",
            ),
        ),
        (
            {"cpu": 4001},
            {"cpu": 2000},
            ("Infeasible", "Node didn't have enough capacity: cpu, requested: 4001, capacity: 4000"),
        ),
        (
            {"cpu": 3000, "memory": 9 * GI},
            {"cpu": 2000},
            (
                "Infeasible",
                f"Node didn't have enough capacity: memory, requested: {9 * GI}, capacity: {8 * GI}",
            ),
        ),
        ({"cpu": 1000}, {"cpu": 9000}, None),
        ({"cpu": 500, "memory": GI}, {"cpu": 9000}, None),
    ],
)
def test_a_resize_is_granted_where_there_is_capacity(asked, used, expected):
    """A resource that grows must fit beside the other pods, and on the node; one that does not grow is always granted."""
    held = {"cpu": 1000, "memory": GI}
    assert refusal(asked, held, used, NODE) == (expected and Refusal(*expected))


def resources(cpu, memory="1Gi", limit=None):
    amounts = {"requests": {"cpu": cpu, "memory": memory}}
    return {**amounts, "limits": {"cpu": limit}} if limit else amounts


def container(cpu, **more):
    return [{"name": "main", "image": "web:1", "resources": resources(cpu), **more}]


async def resize(world, name="p", **amounts):
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": amounts}}]}}
    await world.cluster.patch(
        PODS, name, patch, namespace="default", subresource="resize", patch_type="strategic"
    )


async def raw(world, name="p"):
    return await world.cluster.get(PODS.untyped, name, namespace="default")


async def begin(world, **others):
    """Have a pod of one core run on a node, beside others by their cores, until second 20."""
    await world.add_node()
    await world.add_pod(containers=container("1"))
    for name, cores in others.items():
        await world.add_pod(name, containers=container(cores))
    await world.at(20)


async def reported(world, name="p"):
    """Return what a pod was granted, what it runs with, and its conditions about resizes."""
    status = (await raw(world, name))["status"]
    conditions = [
        (each["type"], each.get("reason"))
        for each in status["conditions"]
        if each["type"].startswith("PodResize")
    ]
    (entry,) = status["containerStatuses"]
    granted, runs = entry.get("allocatedResources", {}), entry.get("resources", {}).get("requests", {})
    return granted.get("cpu"), runs.get("cpu"), conditions


def test_a_resize_is_granted_at_once_and_takes_effect_a_moment_later():
    """PodResizeInProgress is true until the container has the granted resources; nothing is restarted."""

    async def body(world):
        await begin(world)
        assert await reported(world) == (None, None, [])
        await resize(world, cpu="2")
        await world.at(20.5)
        assert await reported(world) == ("2", "1", [("PodResizeInProgress", None)])
        await world.at(21.5)
        assert await reported(world) == ("2", "2", [])
        pod = await raw(world)
        assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"] == 2
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
        assert await world.ready() == "True"

    play(body)


def test_a_deferred_resize_is_granted_when_capacity_is_freed():
    """Without capacity the pod keeps its resources; the end of a neighbour lets it grow."""

    async def body(world):
        await begin(world, q="2")
        await resize(world, cpu="3")
        await world.at(30)
        assert await reported(world) == ("1", "1", [("PodResizePending", "Deferred")])
        pending = pod_condition(await world.pod(), "PodResizePending")
        assert pending.message == (
            "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
        )
        assert pending.last_transition_time == "2026-03-02T00:00:20Z"
        await world.delete("q")
        await world.at(40)
        assert not await world.exists("q")
        assert await reported(world) == ("3", "3", [])

    play(body)


def test_a_neighbour_that_shrinks_and_a_node_that_grows_free_capacity():
    """Resizes of other pods and a node's new status free capacity."""

    async def body(world):
        await begin(world, q="2")
        await resize(world, cpu="2500m")
        await world.at(25)
        assert (await reported(world))[2] == [("PodResizePending", "Deferred")]
        await resize(world, "q", cpu="1500m")
        await world.at(30)
        assert await reported(world) == ("2500m", "2500m", [])
        await resize(world, cpu="4")
        await world.at(35)
        assert (await reported(world))[2] == [("PodResizePending", "Deferred")]
        allocatable = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        await world.cluster.patch(NODES, "n1", {"status": {"allocatable": allocatable}}, subresource="status")
        await world.at(40)
        assert await reported(world) == ("4", "4", [])

    play(body)


def test_a_wish_that_is_taken_back_leaves_nothing():
    """A pod that requests its current resources again waits for nothing."""

    async def body(world):
        await begin(world, q="2")
        await resize(world, cpu="3")
        await world.at(25)
        await resize(world, cpu="1")
        await world.at(30)
        assert await reported(world) == ("1", "1", [])

    play(body)


def test_a_node_that_has_shrunk_makes_a_resize_infeasible():
    """A request that the node can never hold is Infeasible, although it was accepted."""

    async def body(world):
        await begin(world, q="2")
        await resize(world, cpu="3")
        await world.at(25)
        allocatable = {"cpu": "2500m", "memory": "8Gi", "pods": "110"}
        await world.cluster.patch(NODES, "n1", {"status": {"allocatable": allocatable}}, subresource="status")
        await world.at(30)
        assert await reported(world) == ("1", "1", [("PodResizePending", "Infeasible")])

    play(body)


def test_a_container_is_restarted_where_its_policy_says_so():
    """A resource with RestartContainer restarts the container, another one does not."""

    async def body(world):
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        await world.add_node()
        await world.add_pod(containers=container("1", resizePolicy=policy))
        await world.at(20)
        await resize(world, memory="2Gi")
        await world.at(22)
        status = (await raw(world))["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["resources"]["requests"]["memory"]) == (0, "2Gi")
        await resize(world, cpu="2")
        await world.at(23.5)
        status = (await raw(world))["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["ready"]) == (1, False)
        assert status["lastState"]["terminated"]["exitCode"] == 143
        assert await world.ready() == "False"
        await world.at(31)
        assert await world.ready() == "True"
        assert await reported(world) == ("2", "2", [])

    play(body)


def test_a_crash_leaves_granted_resources():
    """Statuses written after a resize still report the resources."""

    async def body(world):
        await begin(world)
        await resize(world, cpu="2")
        await world.at(25)
        world.pool.crash(("default", "p"))
        await world.at(26)
        assert await reported(world) == ("2", "2", [])
        await world.at(40)
        assert await world.ready() == "True"
        assert await reported(world) == ("2", "2", [])

    play(body)


def test_a_failing_node_resizes_when_it_is_well_again():
    """A resize on a node whose kubelet is silent is done after its recovery."""

    async def body(world):
        await begin(world)
        await world.pool.fail_node("n1")
        await resize(world, cpu="2")
        await world.at(30)
        assert await reported(world) == (None, None, [])
        await world.pool.recover_node("n1")
        await world.at(35)
        assert await reported(world) == ("2", "2", [])

    play(body)
