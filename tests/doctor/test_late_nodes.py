"""What the doctor says of nodes that were bought and are late."""

from __future__ import annotations

import pytest
from tests.doctor.findings import found
from tests.nodes.frozen import START, TAINTED, group, node

from kubetide.doctor import GroupStatus
from kubetide.nodes.memory import GroupLearned, TimeTaken
from kubetide.nodes.settings import Settings
from kubetide.ports.cloud import GroupOptions
from kubetide.units.time import before, format_rfc3339, minutes, seconds


def ago(count):
    return format_rfc3339(before(START, minutes(count)))


def late(**objects):
    return [(one.object, one.seen) for one in found("late-nodes", **objects)]


def growing(since, *, registered=1, unregistered=2, state="InProgress"):
    size = {"target_size": 3, "registered": registered, "unregistered": unregistered}
    return GroupStatus("g", 0, 9, scale_up=state, since=before(START, minutes(since)), **size)


@pytest.mark.parametrize(
    ("status", "joined", "said"),
    [
        (growing(9), 90, "2 of 3 machines without a node, and no node has joined for 9m0s; the node loop gives up after 15m0s"),
        (growing(9, unregistered=0), 90, "2 of 3 machines without a node, and no node has joined for 9m0s; the node loop gives up after 15m0s"),
        (growing(7), 90, ""),
        (growing(40), 5, ""),
        (growing(9, registered=3, unregistered=0), 90, ""),
        (growing(9, state="NoActivity"), 90, ""),
        (growing(9, state="Backoff"), 90, ""),
    ],
    ids=["late", "not even made", "in time", "nodes still join", "all there", "not growing", "given up"],
)  # fmt: skip
def test_a_group_that_no_machine_joins_is_late(status, joined, said):
    """After half of the time that a machine has to register; as long as nodes go on joining it is not."""
    objects = {"group_statuses": (status,), "nodes": (node("n1", created=ago(joined)),)}
    named = [("node group g", said)] if said else []
    assert late(**objects) == named
    assert late(**objects, groups=(group("g", nodes=["n1"]),)) == named


def test_a_group_has_the_time_of_its_own_options():
    """max-node-provision-time of the group counts, where the cloud is asked."""
    slow = GroupOptions(max_node_provision_time="40m")
    assert late(group_statuses=(growing(12),), groups=(group("g", options=slow),)) == []
    learned = {"g": GroupLearned(joins=3, starts=(TimeTaken(START, seconds(70)),))}
    [(_, said)] = late(group_statuses=(growing(21),), groups=(group("g", options=slow),), learned=learned)
    assert said.endswith(
        "gives up after 40m0s; the slowest of its last nodes was ready 1m10s after it had joined"
    )


@pytest.mark.parametrize(
    ("minutes_ago", "slowest", "is_late"),
    [(9, 0, True), (7, 0, False), (4, 60, True), (2, 60, False), (9, 300, False), (11, 300, True)],
)
def test_a_node_is_late_by_what_its_group_has_shown(minutes_ago, slowest, is_late):
    """Twice the slowest, at least three minutes; where nothing was seen, half of max-node-startup-time."""
    learned = {"g": GroupLearned(joins=3, starts=(TimeTaken(START, seconds(slowest)),))} if slowest else {}
    reported = late(
        nodes=(node("n1", ready=False, created=ago(minutes_ago)),),
        groups=(group("g", nodes=["n1"]),),
        learned=learned,
    )
    assert bool(reported) is is_late
    for title, said in reported:
        assert title == "Node n1"
        assert said.startswith(f"of group g, not ready for {minutes_ago}m0s: ")
        assert ("; the slowest of the last nodes of the group took" in said) is bool(slowest)


def kubelet(**more):
    state = {"type": "Ready", "status": "False", "lastTransitionTime": ago(20), **more}
    return {"status": {"conditions": [state]}}


@pytest.mark.parametrize(
    ("made", "lacks"),
    [
        (node("n", **kubelet(reason="KubeletNotReady", message="no CNI")), "not ready for 20m0s: KubeletNotReady: no CNI"),
        (node("n", **kubelet(status="Unknown")), "not ready for 20m0s: its kubelet does not report any more"),
        (node("n", created=ago(30), status={"conditions": []}), "not ready for 30m0s: its kubelet has not reported yet"),
        (node("n", created=ago(30), spec={"taints": [{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}]}), "not ready for 30m0s: taint node.kubernetes.io/network-unavailable"),
        (node("n", created=ago(30), labels={"accelerator": "a100"}), "not ready for 30m0s: its devices are not there yet"),
    ],
    ids=["kubelet", "lost", "silent", "taint", "devices"],
)  # fmt: skip
def test_what_a_late_node_lacks_is_named(made, lacks):
    """The kubelet's own words, a taint, or devices."""
    assert late(nodes=(made,), settings=Settings(gpu_label="accelerator")) == [("Node n", lacks)]


def test_a_node_that_goes_or_waits_for_nominations_is_not_late():
    """What is being deleted needs no mending, and the nomination taint has a check of its own."""
    taint = {
        "key": "startup-taint.cluster-autoscaler.kubernetes.io/kubetide-nominates",
        "effect": "NoSchedule",
    }
    going = node("going", ready=False, created=ago(60), spec=TAINTED)
    assert late(nodes=(going, node("new", created=ago(60), spec={"taints": [taint]}))) == []
