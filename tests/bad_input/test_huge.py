"""Pods and nodes with megabytes or thousands of something: a verdict, and the others are served as if they were not there."""

from __future__ import annotations

import logging

import msgspec
import pytest
from tests.bad_input import crowds, huge
from tests.bad_input.test_crowds import UNSCHEDULED, calls_of, put
from tests.embedded.controllers.live import play
from tests.nodes.frozen import LONG_AGO, World, group, template

from kubetide.nodes.records.export import copy_state, export_state
from kubetide.objects.kinds import EVENTS, NODES, PODS
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, pod_condition
from kubetide.scheduling import Snapshot, classify_unbound, equivalence_groups, estimate
from kubetide.scheduling.estimator.packing import Limits
from kubetide.scheduling.pods import classes
from kubetide.testing import builders
from kubetide.units.patch import merge_patch
from kubetide.units.time import minutes

THOUSANDS = 1_000
BUGS = "kubetide.embedded.controllers"


def odd_pod(extra):
    return merge_patch(crowds.pod("sizes", 0), extra)


def many_of(what, count):
    return odd_pod({"spec": huge.MANY[what](count)})


def odd_node(extra):
    return merge_patch(crowds.node(0), extra)


def scheduled(pod, node):
    """Play the scheduler; return the messages about the odd pod's scheduling, and the events about it."""
    bugs = []

    class Bugs(logging.Handler):
        def emit(self, record):
            bugs.append(record.exc_info) if record.exc_info else None

    async def body(live):
        put(live, NODES, node)
        put(live, NODES, crowds.node(1))
        put(live, PODS, pod)
        put(live, PODS, crowds.pod("sizes", 1))
        await live.sleep(3)
        assert live.running["scheduler"].errors == 0
        assert live.pods.objects["shop", "p1"].spec.node_name
        events = [one for one in await live.list(EVENTS) if one.involved_object.name == "p0"]
        odd = live.pods.objects["shop", "p0"]
        return odd.spec.node_name, pod_condition(odd, "PodScheduled"), events

    handler = Bugs()
    logging.getLogger(BUGS).addHandler(handler)
    try:
        found = play(body, "scheduler", "claims", "volumes")
    finally:
        logging.getLogger(BUGS).removeHandler(handler)
    assert bugs == []
    node_name, condition, events = found
    if condition is None:
        assert pod["spec"].get("resourceClaims"), "only of a pod whose claims are missing nothing is said"
        assert not node_name
    else:
        assert bool(node_name) == (condition.status == "True"), (
            "a pod has a node, or a reason why it has none"
        )
    assert all(len(one.message.encode()) <= 1024 for one in events)
    return found


def bought_for(pod, node):
    """Ticks of the node loop over the odd pod, a good one and a full node; gives the increases."""

    def waiting(body, name):
        identity = {"namespace": "default", "uid": name, "creationTimestamp": LONG_AGO}
        status = {"phase": "Pending", "conditions": [UNSCHEDULED]}
        meta = {**body["metadata"], **identity, "name": name}
        return msgspec.convert({**body, "metadata": meta, "status": status}, Pod)

    ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]}
    full = {
        "metadata": {"creationTimestamp": LONG_AGO},
        "spec": {"providerID": "cloud:///n0", "unschedulable": True},
        "status": ready,
    }
    world = World(
        nodes=[msgspec.convert(merge_patch(node, full), Node)],
        pods=[waiting(pod, "odd"), waiting(crowds.pod("sizes", 1), "good")],
        groups=[
            group("g", maximum=10, nodes=["n0"], made=template(labels={crowds.ZONE: "z0", "pool": "g"})),
        ],
    )
    found = world.increases()
    assert found, "a node is bought for the good pod"
    assert any(one.name == "good" and one.reason == "TriggeredScaleUp" for one in world.events)
    world.tick(at=minutes(1))
    assert export_state(copy_state(world.state)) == export_state(world.state)
    return found


PLAIN_NODE = {}


@pytest.mark.parametrize("what", sorted(huge.MANY))
def test_thousands_of_something_in_a_pod(what):
    """The pod gets a node or a reason why not, and the good pod gets its node, in the cluster and from the node loop."""
    pod = many_of(what, THOUSANDS)
    scheduled(pod, odd_node(PLAIN_NODE))
    bought_for(pod, odd_node(PLAIN_NODE))


@pytest.mark.parametrize("what", sorted(huge.LARGE))
def test_megabytes_of_something_in_a_pod(what):
    """Likewise where one text is of megabytes."""
    pod = odd_pod(huge.LARGE[what])
    scheduled(pod, odd_node(PLAIN_NODE))
    bought_for(pod, odd_node(PLAIN_NODE))


@pytest.mark.parametrize("what", sorted(huge.NODES))
def test_a_node_with_too_much_of_something(what):
    """Pods are placed and nodes bought beside it."""
    node = odd_node(huge.NODES[what])
    scheduled(crowds.pod("sizes", 0), node)
    bought_for(crowds.pod("spread by zone", 0), node)


@pytest.mark.parametrize("what", sorted(huge.MANY))
def test_the_work_grows_as_the_content_of_one_pod(what):
    """Four times as much in a pod takes four times the calls to place it, report on it and estimate new nodes."""

    def work(count):
        snapshot = Snapshot()
        for number in range(3):
            snapshot.set_node(msgspec.convert(crowds.node(number), Node))
        copies = [
            msgspec.convert({**many_of(what, count), "metadata": {"name": f"c{at}", "uid": f"u{at}"}}, Pod)
            for at in range(2)
        ]
        for at, one in enumerate(copies):
            snapshot.refusals(classify_unbound(one))
            snapshot.feasible(classify_unbound(one))
            snapshot.add_pod(one, f"n{at}")
        snapshot.feasible(classify_unbound(copies[0]))
        made = msgspec.convert(builders.node("made", labels={crowds.ZONE: "z0"}), Node)
        estimate(snapshot, made, (), equivalence_groups(copies), Limits((10,)))

    assert calls_of(lambda: work(400)) < 5 * calls_of(lambda: work(100))


def test_classes_are_cached_by_their_size(monkeypatch):
    """Only the last few pods with megabytes in the fields that distinguish them are cached."""
    monkeypatch.setattr(classes._classes, "_size", 1 << 20)
    for number in range(40):
        labels = {"a": f"{number}" + "v" * (1 << 18)}
        classify_unbound(msgspec.convert({"metadata": {"name": "p", "labels": labels}, "spec": {}}, Pod))
    cached = {**classes._classes.newest, **classes._classes._old}
    assert sum(len(key) > 1 << 18 for key in cached) <= 8
