from __future__ import annotations

import pytest
from tests.embedded.controllers.live import Failing, play

from kubetide.embedded.controllers.scheduling.why_nowhere import NO_NODES, refusal_message
from kubetide.objects.kinds import EVENTS, NODES, PODS, PRIORITY_CLASSES
from kubetide.objects.pod import pod_condition
from kubetide.ports.errors import Conflict, NotFound, Unavailable
from kubetide.testing import builders


async def add(live, name, *, cpu="1", memory="1Gi", **spec):
    await live.add(PODS, builders.pod(name, cpu=cpu, memory=memory, extra={"spec": spec}))


async def remove(live, name):
    await live.cluster.delete(PODS, name, namespace="shop", grace_period_s=0)


async def where(live):
    """Pod to node, empty while it waits."""
    return {pod.metadata.name: pod.spec.node_name for pod in await live.pods_now()}


async def said_of(live, name):
    return pod_condition(await live.get(PODS, name), "PodScheduled")


def bindings(live):
    """A list that takes the pods in the order of their binding."""
    bound = []

    def note(key, old, new):
        if new is not None and new.spec.node_name and (old is None or not old.spec.node_name):
            bound.append(key[1])

    live.pods.on_change(note)
    return bound


def test_pods_are_bound_by_priority_and_then_arrival():
    """Pods that wait together are bound by priority, and equal ones in the order of their arrival."""

    async def body(live):
        bound = bindings(live)
        for name, value in (("high", 1000), ("low", -5)):
            await live.cluster.create(PRIORITY_CLASSES, builders.priority_class(name, value))
        await add(live, "d", priorityClassName="low")
        await add(live, "c")
        await add(live, "b")
        await add(live, "a", priorityClassName="high")
        await live.sleep(1)
        await live.add_nodes("n1")
        await live.sleep(30)
        assert bound == ["a", "c", "b", "d"]

    play(body, "scheduler")


def test_what_is_said_of_a_pod_that_fits_nowhere():
    """Condition and event say how many nodes there are and why each does not take the pod."""

    async def body(live):
        await live.add_nodes("n1", "n2", cpu="1")
        await live.add_nodes("n3", extra={"spec": {"unschedulable": True}})
        await add(live, "big", cpu="2")
        await live.sleep(1)
        message = (
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )
        condition = await said_of(live, "big")
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert condition.message == message
        (event,) = await live.list(EVENTS)
        assert (event.type, event.reason, event.message) == ("Warning", "FailedScheduling", message)
        assert event.involved_object.name == "big"

    play(body, "scheduler")


def test_what_is_said_without_nodes():
    """A cluster without nodes has a message of its own."""

    async def body(live):
        await add(live, "first")
        await live.sleep(1)
        assert (await said_of(live, "first")).message == NO_NODES

    play(body, "scheduler")


@pytest.mark.parametrize(
    ("nodes", "reasons", "message"),
    [
        (2, {"Insufficient cpu": 2}, "0/2 nodes are available: 2 Insufficient cpu."),
        (
            12,
            {"b": 2, "a": 10},
            "0/12 nodes are available: 10 a, 2 b.",
        ),
        (
            3,
            {"Insufficient memory": 2, "Insufficient cpu": 2, "node(s) had untolerated taint(s)": 1},
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory.",
        ),
        (0, {}, NO_NODES),
    ],
)
def test_the_text_of_a_refusal(nodes, reasons, message):
    """Counts with their reasons are sorted as text."""
    assert refusal_message(nodes, reasons) == message


@pytest.mark.parametrize("help_", ["a node comes", "a pod goes", "a taint goes", "a node grows"])
def test_a_waiting_pod_is_tried_again_when_something_helps(help_):
    """A pod that fits nowhere is bound soon after a node comes or changes or a pod goes."""

    async def body(live):
        await live.add_nodes("n1", cpu="1")
        await live.add_nodes("n2", extra={"spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}})
        await add(live, "first")
        await live.sleep(1)
        await add(live, "second")
        await live.sleep(60)
        assert (await where(live))["second"] == ""
        if help_ == "a node comes":
            await live.add_nodes("n3")
        elif help_ == "a pod goes":
            await remove(live, "first")
        elif help_ == "a taint goes":
            await live.cluster.patch(NODES, "n2", {"spec": {"taints": None}})
        else:
            await live.cluster.patch(
                NODES, "n1", {"status": {"allocatable": {"cpu": "2"}}}, subresource="status"
            )
        await live.sleep(0.1)
        assert (await where(live))["second"] != ""

    play(body, "scheduler")


def test_a_pod_that_was_just_refused_is_tried_again_when_something_helps():
    """Its back-off only puts it behind others: where none is active it is tried at once (KEP-5142)."""

    async def body(live):
        await live.add_nodes("n1", cpu="500m")
        await add(live, "first")
        await live.sleep(0.5)
        assert await where(live) == {"first": ""}
        await live.add_nodes("n2")
        await live.sleep(0.1)
        assert await where(live) == {"first": "n2"}

    play(body, "scheduler")


def test_pods_of_others_are_left_alone():
    """Pods with gates wait until the gates are removed, as their condition says; pods of another scheduler are ignored."""

    async def body(live):
        await live.add_nodes("n1")
        await add(live, "gated", schedulingGates=[{"name": "wait"}])
        await add(live, "other", schedulerName="mine")
        await live.sleep(30)
        assert await where(live) == {"gated": "", "other": ""}
        assert await said_of(live, "other") is None
        gated = await said_of(live, "gated")
        assert (gated.status, gated.reason) == ("False", "SchedulingGated")
        assert gated.message == "Scheduling is blocked due to non-empty scheduling gates"
        assert gated.last_transition_time == (await live.get(PODS, "gated")).metadata.creation_timestamp
        await live.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
        await live.sleep(1)
        assert await where(live) == {"gated": "n1", "other": ""}

    play(body, "scheduler")


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ({"n1": "4", "n2": "8", "n3": "4"}, "n2"),
        ({"n3": "4", "n1": "4", "n2": "4"}, "n3"),
        ({"n1": "500m", "n2": "4"}, "n2"),
    ],
)
def test_the_least_allocated_node_is_chosen_and_of_equals_the_first_to_come(sizes, chosen):
    """A pod goes where the largest share is left free; of equal nodes to the first that came."""

    async def body(live):
        for name, cpu in sizes.items():
            await live.add_nodes(name, cpu=cpu, memory=f"{8 if cpu == '8' else 4}Gi")
        await add(live, "first")
        await live.sleep(1)
        assert await where(live) == {"first": chosen}

    play(body, "scheduler")


def test_a_binding_counts_before_the_cluster_confirms_it():
    """Pods of one moment are spread over equal nodes and never overfill one."""

    async def body(live):
        await live.add_nodes("n1", "n2", "n3", cpu="2", memory="4Gi")
        for number in range(8):
            await add(live, f"p{number}")
        await live.sleep(1)
        on = sorted((await where(live)).values())
        assert on == ["", "", "n1", "n1", "n2", "n2", "n3", "n3"]

    play(body, "scheduler")


@pytest.mark.parametrize("error", [Conflict("changed"), Unavailable("not now")])
def test_a_binding_that_fails_is_tried_again(error):
    """The capacity of a failed binding is free again, and the pod is bound after its back-off."""
    failing = Failing(lambda request: request.subresource == "binding" and failing.hits < 2, error)

    async def body(live):
        await live.add_nodes("n1", cpu="1")
        await add(live, "first")
        await live.sleep(30)
        assert await where(live) == {"first": "n1"}
        assert failing.hits == 2

    play(body, "scheduler", faults=failing)


def test_a_deleted_pod_frees_its_reserved_capacity():
    """A binding that is answered with 404 leaves the node to others."""
    failing = Failing(lambda request: request.subresource == "binding" and failing.hits < 1, NotFound("gone"))

    async def body(live):
        await live.add_nodes("n1", cpu="1")
        await add(live, "first")
        await live.sleep(1)
        await remove(live, "first")
        await add(live, "second")
        await live.sleep(1)
        assert await where(live) == {"second": "n1"}

    play(body, "scheduler", faults=failing)


def test_expiring_watches_lose_no_pod_and_no_capacity():
    """Pods that come while caches list anew are all bound, and no node is overfilled."""

    async def body(live):
        await live.add_nodes("n1", "n2", cpu="4")
        for number in range(8):
            await add(live, f"p{number}")
            live.cluster.expire_watches()
            await live.sleep(0.2)
        await live.sleep(30)
        assert sorted((await where(live)).values()) == ["n1"] * 4 + ["n2"] * 4

    play(body, "scheduler")


def inter_pod(kind, **term):
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname", **term}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


async def add_web(live, name, **spec):
    extra = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    await live.add(PODS, builders.pod(name, cpu="100m", extra=extra))


def test_pods_with_anti_affinity_wait_for_a_node_without_the_other():
    """The second pod waits although the node has capacity, and is bound as soon as the first is deleted."""

    async def body(live):
        await live.add_nodes("n1")
        for name in ("a", "b"):
            await add_web(live, name, **inter_pod("podAntiAffinity"))
        await live.sleep(1)
        assert await where(live) == {"a": "n1", "b": ""}
        condition = await said_of(live, "b")
        assert condition.message == (
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )
        await remove(live, "a")
        await live.sleep(15)
        assert (await where(live))["b"] == "n1"

    play(body, "scheduler")


def test_a_pod_with_affinity_is_bound_once_its_peer_is_there():
    """A pod that must be near another is tried again when the other has a node, not only after 5 minutes."""

    async def body(live):
        await live.add_nodes("n1", "n2")
        await add(live, "follower", cpu="100m", **inter_pod("podAffinity"))
        await live.sleep(1)
        assert await where(live) == {"follower": ""}
        await add_web(live, "leader")
        await live.sleep(15)
        placed = await where(live)
        assert placed["follower"] == placed["leader"] != ""

    play(body, "scheduler")


def test_pods_are_spread_over_nodes():
    """Hard spreading holds for every pod in turn: two nodes get two each of four pods."""

    async def body(live):
        await live.add_nodes("n1", cpu="8")
        await live.add_nodes("n2", cpu="1")
        rule = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        for name in "abcd":
            await add_web(live, name, topologySpreadConstraints=[rule])
        await live.sleep(1)
        assert sorted((await where(live)).values()) == ["n1", "n1", "n2", "n2"]

    play(body, "scheduler")


def test_a_soft_taint_repels_pods_while_there_is_another_node():
    """PreferNoSchedule on the emptier node sends pods to the other, as kube-scheduler's default profile does."""

    async def body(live):
        await live.add_nodes("small", cpu="4", memory="4Gi")
        await live.add_nodes("large", cpu="16", memory="16Gi")
        taint = {"key": "going", "effect": "PreferNoSchedule"}
        await live.cluster.patch(NODES, "large", {"spec": {"taints": [taint]}})
        await add(live, "first")
        await live.sleep(1)
        assert await where(live) == {"first": "small"}

    play(body, "scheduler")


def test_a_preference_that_cannot_be_read_is_reported():
    """The pod's condition has the error of its scoring, as the scheduler's error."""

    async def body(live):
        await live.add_nodes("n1", "n2")
        wrong = {"key": "size", "operator": "Gt", "values": ["many"]}
        preferred = [{"weight": 1, "preference": {"matchExpressions": [wrong]}}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        await add(live, "picky", affinity=affinity)
        await live.sleep(1)
        said = await said_of(live, "picky")
        assert said.reason == "SchedulerError"
        assert said.message.startswith('running PreScore plugin "NodeAffinity": [0].matchExpressions[0]')

    play(body, "scheduler")
