"""The doctor's checks as a whole, and those of owners, requests, scale-down blockers and competing controllers."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from tests.doctor.findings import found, hpa, pdb, without_requests
from tests.nodes.frozen import START, deployment, group, node, pod, replica_set

from kubetide.doctor import Server, Snapshot, diagnose
from kubetide.doctor.registry import CHECKS, Check
from kubetide.nodes.facts.nodes import NOMINATION_TAINT
from kubetide.objects.cluster import Lease
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.units.time import before, format_rfc3339, hours, minutes, seconds


def test_every_check_has_a_name_of_its_own():
    """No two checks share a name, and a healthy cluster has no findings."""
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    healthy = Snapshot(
        now=START,
        deployments=(deployment("web", 2),),
        hpas=(hpa("web", "web"),),
        nodes=(node("n1"),),
        groups=(group("g", nodes=["n1"]),),
    )
    assert diagnose(healthy) == ()


def test_owners_that_dangle():
    """A pod whose ReplicaSet was deleted, or was made again under its name, has no owner."""
    lost = pod("lost", node="n1", of="gone")
    (one,) = found("owners", pods=(lost, pod("well", node="n1")), replica_sets=(replica_set("web", 1),))
    assert one.object == "Pod default/lost"
    renewed = msgspec.structs.replace(
        replica_set("web", 1), metadata=msgspec.structs.replace(replica_set("web", 1).metadata, uid="new")
    )
    (one,) = found("owners", pods=(pod("old", node="n1"),), replica_sets=(renewed,))
    assert "another uid" in one.seen
    assert found("owners", pods=(lost,), unread={"replicasets": "forbidden"}) == []


def test_workloads_without_requests_are_reported_once():
    """The Deployment is named, not its ReplicaSets and pods too; one scaled to zero is left alone."""
    owned = replica_set("web-1", 2, of="web")
    reported = found("requests", deployments=(without_requests("web"),), replica_sets=(owned,))
    assert [(one.object, one.seen) for one in reported] == [
        ("Deployment default/web", "no request for cpu in app and memory in app")
    ]


def test_pods_that_block_a_node_for_ever():
    """A bare pod, local storage and the annotation are reported with the node's price; one that may move is not."""
    bare = pod("bare", node="n1", kind=None)
    stuck = pod(
        "stuck",
        node="n2",
        metadata={"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    )
    local = pod("local", node="n2", spec={"volumes": [{"name": "tmp", "emptyDir": {}}]})
    reported = found(
        "scale-down-blockers",
        pods=(bare, stuck, local, pod("free", node="n3")),
        nodes=(node("n1"), node("n2"), node("n3")),
        replica_sets=(replica_set("web", 3),),
        groups=(
            group("cheap", nodes=["n1", "n3"], price_per_hour=0.1),
            group("dear", nodes=["n2"], price_per_hour=2.0),
        ),
    )
    assert [(one.object, one.cost_per_hour) for one in reported] == [("Node n2", 2.0), ("Node n1", 0.1)]
    assert "default/local: LocalStorageRequested; default/stuck: NotSafeToEvictAnnotation" in reported[0].seen
    assert "default/bare: NotReplicated" in reported[1].seen


def test_a_node_that_stays_closed_to_pods():
    """A node that is ready for long and has the nomination taint is found; a new or unready one is left alone."""
    closed = {"taints": [{"key": NOMINATION_TAINT, "effect": "NoSchedule"}]}
    now = format_rfc3339(before(START, minutes(1)))
    nodes = (
        node("old", spec=closed),
        node("new", spec=closed, created=now),
        node("unready", spec=closed, ready=False),
        node("open"),
    )
    [finding] = found("nomination-taint", nodes=nodes)
    assert (finding.severity, finding.object) == ("critical", "Node old")
    assert finding.seen == f"ready for 2h0m0s, and still has the taint {NOMINATION_TAINT}"
    assert f"kubectl taint nodes old {NOMINATION_TAINT}-" in finding.fix


def test_competing_controllers():
    """Two recent writers of one status are critical; an old entry that a handover left is no finding."""
    key = ("default", "web")
    ours, theirs = (
        Server(key, "kubetide", START),
        Server(key, "kube-controller-manager", before(START, minutes(2))),
    )
    (one,) = found("competing-controllers", servers=(ours, theirs))
    assert "kube-controller-manager and kubetide" in one.seen
    old = Server(key, "kube-controller-manager", before(START, hours(2)))
    assert found("competing-controllers", servers=(ours, old)) == []
    (split,) = found("competing-controllers", servers=(ours, Server(("default", "b"), "keda", START)))
    assert (split.severity, split.object) == ("info", "controller keda")


def lease(name, renewed):
    body = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "holderIdentity": f"{name}-0",
            "leaseDurationSeconds": 15,
            "renewTime": format_rfc3339(renewed),
        },
    }
    return msgspec.convert(body, Lease)


def test_two_node_autoscalers():
    """Two Leases that are held are reported; one that has run out is not."""
    ours = lease("cluster-autoscaler", START)
    (one,) = found(
        "competing-controllers", leases=(ours, lease("karpenter-leader-election", before(START, seconds(5))))
    )
    assert one.severity == "critical"
    expired = lease("karpenter-leader-election", before(START, minutes(5)))
    assert found("competing-controllers", leases=(ours, expired)) == []


def test_one_bad_object_leaves_the_others():
    """A budget whose selector no rule understands is reported by name, and the other budgets are checked."""
    bad = msgspec.convert(
        {
            "metadata": {"name": "bad", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
        },
        PodDisruptionBudget,
    )
    reported = found("budgets", pdbs=(bad, pdb(max_unavailable=0)), deployments=(deployment("web", 2),))
    assert [one.object for one in reported] == [
        "PodDisruptionBudget default/bad",
        "PodDisruptionBudget default/budget",
    ]
    assert "cannot be read" in reported[0].seen


def test_a_check_that_fails_leaves_the_others():
    """A check that ends with an error is a finding of its own."""

    def fail(snapshot):
        raise ValueError(f"bad object at {snapshot.now}")

    reported = diagnose(Snapshot(now=START), (Check("broken", fail),))
    assert [(one.check, one.object, one.severity) for one in reported] == [
        ("broken", "the check itself", "info")
    ]


def test_the_page_lists_the_checks():
    """The table in docs/usage.md has each check, in the order of the registry."""
    page = (Path(__file__).parents[2] / "docs" / "usage.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w-]+)` \|", page.split("| Check |", 1)[1], flags=re.MULTILINE)
    assert listed[: len(CHECKS)] == [check.name for check in CHECKS]
