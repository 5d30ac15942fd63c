"""Nodes that fail and recover, their heartbeats and their Leases."""

from __future__ import annotations

import pytest
from tests.embedded.kubelet.pool_world import play

from kubetide.objects.kinds import LEASES, NODES
from kubetide.objects.node import node_condition
from kubetide.units.time import seconds


@pytest.mark.parametrize(("health", "taint"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_an_unhealthy_node_is_tainted_and_loses_its_pods_readiness(health, taint):
    """The node's Ready condition, its taints and its pods' Ready condition fall, and rise again on recovery."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(19)
        await world.add_node("n2")
        await world.at(20)
        await world.pool.fail_node("n1", health)
        await world.at(21)
        node = await world.cluster.get(NODES, "n1")
        assert node_condition(node, "Ready").status == health
        assert [(each.key, each.effect) for each in node.spec.taints] == [
            (f"node.kubernetes.io/{taint}", "NoSchedule"),
            (f"node.kubernetes.io/{taint}", "NoExecute"),
        ]
        assert await world.ready() == "False"
        await world.add_pod("late")
        await world.delete("p")
        await world.at(120)
        assert await world.exists("p"), "a kubelet that is down ends no pod"
        assert await world.ready("late") is None
        await world.pool.recover_node("n1")
        await world.at(140)
        node = await world.cluster.get(NODES, "n1")
        assert node_condition(node, "Ready").status == "True"
        assert not node.spec.taints
        assert not await world.exists("p")
        assert await world.ready("late") == "True"

    play(body)


async def evicting(world):
    """Return the names of the nodes whose pods are evicted."""
    nodes = (await world.cluster.list(NODES)).items
    return [
        node.metadata.name
        for node in nodes
        if any(taint.effect == "NoExecute" for taint in node.spec.taints or ())
    ]


def test_nothing_is_evicted_while_no_node_is_ready():
    """The evicting taint goes when the last node is lost, and comes back for the others when one recovers."""

    async def body(world):
        found = []
        for name in ("n1", "n2"):
            await world.add_node(name)
        await world.at(1)
        for second, act in (
            (10, world.pool.fail_node("n1")),
            (20, world.pool.fail_node("n2")),
            (30, world.pool.recover_node("n2")),
            (40, world.pool.recover_node("n1")),
        ):
            await world.at(second)
            await act
            await world.at(second + 1)
            found.append(await evicting(world))
        return found

    assert play(body) == [["n1"], [], ["n1"], []]


def test_a_node_that_joins_lets_evictions_begin():
    """The only node is lost: its pods stay until there is another that is Ready."""

    async def body(world):
        await world.add_node("n1")
        await world.at(1)
        await world.pool.fail_node("n1")
        await world.at(60)
        before = await evicting(world)
        await world.add_node("n2")
        await world.at(61)
        return before, await evicting(world)

    assert play(body) == ([], ["n1"])


def test_recovery_makes_ready_only_what_was_ready():
    """A pod that was not ready before the failure waits for its own time."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(13)
        await world.pool.fail_node("n1")
        await world.at(14)
        await world.pool.recover_node("n1")
        await world.at(16)
        assert await world.ready() == "False"
        await world.at(18)
        assert await world.ready() == "True"

    play(body)


def test_heartbeats_confirm_every_five_minutes():
    """Heartbeat times move, transition times do not, and failing nodes are silent."""

    async def body(world):
        await world.add_node("n1")
        await world.add_node("n2")
        await world.at(1)
        await world.pool.fail_node("n2")
        await world.at(301)
        first, second = [await world.cluster.get(NODES, name) for name in ("n1", "n2")]
        ready = node_condition(first, "Ready")
        assert (ready.last_heartbeat_time, ready.last_transition_time) == (
            "2026-03-02T00:05:00Z",
            "2026-03-02T00:00:00Z",
        )
        assert node_condition(second, "Ready").last_heartbeat_time is None

    play(body)


def test_leases_are_renewed_on_request():
    """One renewal makes the missing leases and moves the others."""

    async def body(world):
        await world.add_node()
        await world.at(25)
        return await world.cluster.get(LEASES, "n1", namespace="kube-node-lease")

    lease = play(body, lease_renewal=seconds(10))
    assert lease.spec.renew_time == "2026-03-02T00:00:20.000000Z"
    assert lease.spec.holder_identity == "n1"
