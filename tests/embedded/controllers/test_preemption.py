"""Preemption: pods of a lower priority give way to one that fits nowhere, as with kube-scheduler's plugin DefaultPreemption."""

from __future__ import annotations

from tests.embedded.controllers.live import play
from tests.embedded.controllers.test_nominations import CLOSED, nominate, nominated, open_up
from tests.embedded.controllers.test_scheduler import add, said_of, where

from kubetide.objects.kinds import EVENTS, NODES, PODS, PRIORITY_CLASSES
from kubetide.objects.pod import pod_condition
from kubetide.testing import builders


async def priorities(live):
    for name, value in (("low", -5), ("mid", 10), ("high", 1000)):
        await live.cluster.create(PRIORITY_CLASSES, builders.priority_class(name, value))


def test_a_placeholder_gives_way():
    """It is marked and deleted, its node is kept for the pod, which is bound when the placeholder has stopped."""

    async def body(live):
        await priorities(live)
        await live.add_nodes("n1", cpu="2")
        await add(live, "reserve", cpu="2", priorityClassName="low")
        await live.sleep(10)
        uid = (await live.get(PODS, "reserve")).metadata.uid
        await add(live, "web", cpu="1")
        await live.sleep(0.5)
        going = await live.get(PODS, "reserve")
        assert going.metadata.deletion_timestamp
        condition = pod_condition(going, "DisruptionTarget")
        assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
        assert await nominated(live, "web") == "n1"
        assert await where(live) == {"reserve": "n1", "web": ""}
        await live.sleep(5)
        assert await where(live) == {"web": "n1"}
        web = await live.get(PODS, "web")
        events = (await live.cluster.list(EVENTS, namespace="shop")).items
        [event] = [one for one in events if one.reason == "Preempted"]
        assert event.involved_object.uid == uid
        assert event.message == f"Preempted by pod {web.metadata.uid} on node n1"

    play(body, "scheduler", "kubelets")


def test_a_nomination_stays_until_the_last_victim_is_gone():
    """The pod is tried as each of them goes; meanwhile a pod of its own priority cannot use what is free already."""

    async def body(live):
        await priorities(live)
        await live.add_nodes("n1", cpu="3")
        for number, grace in enumerate((5, 30, 60)):
            await add(
                live, f"low-{number}", cpu="1", priorityClassName="low", terminationGracePeriodSeconds=grace
            )
        await live.sleep(5)
        await add(live, "large", cpu="3")
        await live.sleep(1)
        assert all(
            pod.metadata.deletion_timestamp for pod in await live.pods_now() if "low" in pod.metadata.name
        )
        await live.cluster.delete(PODS, "low-0", namespace="shop", grace_period_s=0)
        await add(live, "small", cpu="1")
        await live.sleep(5)
        assert await nominated(live, "large") == "n1"
        assert (await where(live))["small"] == ""
        for number in (1, 2):
            await live.cluster.delete(PODS, f"low-{number}", namespace="shop", grace_period_s=0)
        await live.sleep(1)
        assert await where(live) == {"large": "n1", "small": ""}

    play(body, "scheduler")


def test_a_node_that_goes_while_room_is_made_is_forgotten():
    """The pod is tried again, and room is made for it on another node."""

    async def body(live):
        await priorities(live)
        for number in (1, 2):
            await live.add_nodes(f"n{number}", cpu="2")
            await add(live, f"low-{number}", cpu="2", priorityClassName="low", nodeName=f"n{number}")
        await live.sleep(5)
        await add(live, "web", cpu="2")
        await live.sleep(1)
        first = await nominated(live, "web")
        await live.cluster.delete(NODES, first)
        await live.sleep(1)
        other = {"n1": "n2", "n2": "n1"}[first]
        await live.cluster.patch(NODES, other, {"metadata": {"labels": {"changed": "yes"}}})
        await live.cluster.patch(PODS, "web", {"metadata": {"labels": {"new": "yes"}}}, namespace="shop")
        await live.sleep(1)
        assert await nominated(live, "web") == other
        await live.cluster.delete(PODS, f"low-{other[1]}", namespace="shop", grace_period_s=0)
        await live.sleep(1)
        assert (await where(live))["web"] == other

    play(body, "scheduler")


def test_nobody_gives_way_where_it_does_not_help():
    """To a pod that never preempts, one of no higher priority, and one to which the node is closed."""

    async def body(live):
        await priorities(live)
        await live.add_nodes("n1", cpu="2")
        await live.add_nodes("n2", cpu="2", extra=CLOSED)
        tolerations = [{"key": "closed", "operator": "Exists"}]
        for name in ("n1", "n2"):
            await add(
                live, f"on-{name}", cpu="2", priorityClassName="mid", nodeName=name, tolerations=tolerations
            )
        polite = builders.priority_class("polite", 1000) | {"preemptionPolicy": "Never"}
        await live.cluster.create(PRIORITY_CLASSES, polite)
        await add(live, "polite", cpu="1", priorityClassName="polite")
        await add(live, "equal", cpu="1", priorityClassName="mid")
        await add(
            live,
            "elsewhere",
            cpu="1",
            priorityClassName="high",
            nodeSelector={"kubernetes.io/hostname": "n2"},
        )
        await live.sleep(20)
        found = await where(live)
        assert found == {"on-n1": "n1", "on-n2": "n2", "polite": "", "equal": "", "elsewhere": ""}
        assert not any(pod.metadata.deletion_timestamp for pod in await live.pods_now())

    play(body, "scheduler")


def test_a_nomination_of_a_lower_priority_ends():
    """Room is made on its node for a pod of a higher priority, so that it has to look for another."""

    async def body(live):
        await priorities(live)
        await live.add_nodes("n1", cpu="4", extra=CLOSED)
        tolerations = [{"key": "closed", "operator": "Exists"}]
        await add(live, "low", cpu="2", priorityClassName="low", nodeName="n1", tolerations=tolerations)
        await add(live, "planned", cpu="2", priorityClassName="mid")
        await live.sleep(60)
        await nominate(live, "planned", "n1")
        await live.sleep(1)
        await add(live, "urgent", cpu="4", priorityClassName="high", tolerations=tolerations)
        await live.sleep(1)
        assert await nominated(live, "urgent") == "n1"
        assert await nominated(live, "planned") == ""
        await live.cluster.delete(PODS, "low", namespace="shop", grace_period_s=0)
        await live.sleep(1)
        await open_up(live, "n1")
        await live.sleep(15)
        assert await where(live) == {"planned": "", "urgent": "n1"}

    play(body, "scheduler")


def test_what_is_said_where_nobody_gives_way():
    """Per node: no pods of a lower priority, what is short without them, or that nothing on the node could help."""

    async def body(live):
        await priorities(live)
        await live.add_nodes("n1", "n2", cpu="4")
        await live.add_nodes("n3", cpu="2")
        for name, node, priority in (("a", "n1", "high"), ("b", "n1", "low"), ("c", "n2", "high")):
            cpu = "1" if priority == "low" else "3"
            await add(live, name, cpu=cpu, memory="1Mi", nodeName=node, priorityClassName=priority)
        await add(live, "asks", cpu="3", priorityClassName="mid")
        await live.sleep(1)
        message = (
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: "
            "1 Insufficient cpu, 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
        )
        assert (await said_of(live, "asks")).message == message
        assert message in {event.message for event in await live.list(EVENTS)}

    play(body, "scheduler")


def test_what_is_said_of_a_pod_for_which_nobody_may_give_way():
    """Its PriorityClass says so; a nomination of it stays."""

    async def body(live):
        await priorities(live)
        polite = builders.priority_class("polite", 500) | {"preemptionPolicy": "Never"}
        await live.cluster.create(PRIORITY_CLASSES, polite)
        await live.add_nodes("n1", cpu="2", extra=CLOSED)
        await add(live, "low", priorityClassName="low", nodeName="n1")
        await add(live, "asks", cpu="2", priorityClassName="polite")
        await live.sleep(1)
        said = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        assert (await said_of(live, "asks")).message.endswith(f"untolerated taint(s). {said}")
        await nominate(live, "asks", "n1")
        await live.cluster.patch(PODS, "asks", {"metadata": {"labels": {"new": "yes"}}}, namespace="shop")
        await live.sleep(1)
        assert await nominated(live, "asks") == "n1"
        await open_up(live, "n1")
        await live.cluster.delete(PODS, "low", namespace="shop", grace_period_s=0)
        await live.sleep(15)
        assert (await where(live))["asks"] == "n1"

    play(body, "scheduler")


def test_what_is_said_while_room_is_made():
    """Nobody else is preempted meanwhile; of the first try only what the nodes say is told."""

    async def body(live):
        await priorities(live)
        await live.add_nodes("n1", cpu="2")
        for name in ("low-1", "low-2"):
            await add(live, name, priorityClassName="low", terminationGracePeriodSeconds=60)
        await live.sleep(5)
        await add(live, "web", cpu="2", priorityClassName="high")
        await live.sleep(1)
        base = "0/1 nodes are available: 1 Insufficient cpu."
        assert (await said_of(live, "web")).message == base
        await live.cluster.delete(PODS, "low-1", namespace="shop", grace_period_s=0)
        await live.sleep(5)
        why = "not eligible due to a terminating pod on the nominated node."
        assert (
            await said_of(live, "web")
        ).message == f"{base} no new claims to deallocate, preemption: {why}"
        assert await nominated(live, "web") == "n1"

    play(body, "scheduler")
