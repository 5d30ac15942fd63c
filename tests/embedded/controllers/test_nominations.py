"""Nominated pods on the embedded scheduler: they come first on their node, and what they need is kept for them."""

from __future__ import annotations

import pytest
from tests.embedded.controllers.live import play
from tests.embedded.controllers.test_scheduler import add, remove, where

from kubetide.objects.kinds import NODES, PODS, PRIORITY_CLASSES
from kubetide.testing import builders

CLOSED = {"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}


async def nominate(live, name, node):
    await live.cluster.patch(
        PODS, name, {"status": {"nominatedNodeName": node}}, namespace="shop", subresource="status"
    )


async def open_up(live, name):
    await live.cluster.patch(NODES, name, {"spec": {"taints": None}})


async def nominate_on_closed_node(live):
    """Let a pod wait for a node that is closed to it, and nominate it to that node."""
    await live.add_nodes("n1", cpu="2", extra=CLOSED)
    await add(live, "planned", cpu="2")
    await live.sleep(60)
    await nominate(live, "planned", "n1")
    await live.sleep(1)


async def nominated(live, name):
    return (await live.get(PODS, name)).status.nominated_node_name


def test_a_nominated_pod_gets_its_node_before_those_that_came_first():
    """Another that would fit waits, and takes what is left elsewhere; the nomination ends with the binding."""

    async def body(live):
        await live.add_nodes("n1", cpu="2", extra=CLOSED)
        await add(live, "first")
        await add(live, "second", cpu="2")
        await live.sleep(60)
        await nominate(live, "second", "n1")
        await live.sleep(5)
        assert await nominated(live, "second") == "n1"
        await open_up(live, "n1")
        await live.sleep(15)
        assert await where(live) == {"first": "", "second": "n1"}
        assert await nominated(live, "second") == ""
        await live.add_nodes("n2", cpu="2")
        await live.sleep(15)
        assert await where(live) == {"first": "n2", "second": "n1"}

    play(body, "scheduler")


def test_a_pod_of_a_higher_priority_takes_what_is_kept():
    """Only pods of no higher priority leave it alone; the nomination ends as the pod fits nowhere."""

    async def body(live):
        await live.cluster.create(PRIORITY_CLASSES, builders.priority_class("high", 1000))
        await nominate_on_closed_node(live)
        await add(live, "urgent", cpu="2", priorityClassName="high")
        await live.sleep(3)  # until both have backed off
        await open_up(live, "n1")
        await live.sleep(15)
        assert await where(live) == {"planned": "", "urgent": "n1"}
        assert await nominated(live, "planned") == ""

    play(body, "scheduler")


def test_a_nomination_is_lost_at_a_try_at_which_the_node_is_closed():
    """As kube-scheduler does it: whoever nominates does so last of all."""

    async def body(live):
        await nominate_on_closed_node(live)
        assert await nominated(live, "planned") == "n1"
        # A pod whose labels change is tried again.
        await live.cluster.patch(PODS, "planned", {"metadata": {"labels": {"new": "yes"}}}, namespace="shop")
        await live.sleep(5)
        assert await where(live) == {"planned": ""}
        assert await nominated(live, "planned") == ""

    play(body, "scheduler")


@pytest.mark.parametrize(
    "ends", ["the pod goes", "it is nominated elsewhere", "the nomination is taken back"]
)
def test_what_was_kept_is_free_again(ends):
    """As soon as the nomination is no longer there."""

    async def body(live):
        await live.add_nodes("n2", cpu="2", extra=CLOSED)
        await nominate_on_closed_node(live)
        await add(live, "other", cpu="2", nodeSelector={"kubernetes.io/hostname": "n1"})
        await live.sleep(1)
        if ends == "the pod goes":
            await remove(live, "planned")
        else:
            await nominate(live, "planned", "n2" if "elsewhere" in ends else None)
        await open_up(live, "n2")
        await live.sleep(15)
        await open_up(live, "n1")
        await live.sleep(15)
        found = await where(live)
        assert found.pop("other") == "n1"
        assert found == ({} if ends == "the pod goes" else {"planned": "n2"})

    play(body, "scheduler")


def test_a_node_that_goes_takes_its_nominations_along():
    """The pod is bound to another node as if nothing had been."""

    async def body(live):
        await nominate_on_closed_node(live)
        await live.cluster.delete(NODES, "n1")
        await live.add_nodes("n2", cpu="2")
        await live.sleep(15)
        assert await where(live) == {"planned": "n2"}

    play(body, "scheduler")
