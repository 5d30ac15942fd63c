"""Which pods let their node go."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.nodes.facts.nodes import DAEMON_SET_POD_ANNOTATION
from kubetide.nodes.scale_down.drain_rules import RULES, DrainContext, evaluate, pods_to_move, prepare, settle
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.nodes.settings import Settings
from kubetide.objects.batch import Job
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, ReplicaSet
from kubetide.units.time import ZERO, after, minutes, parse_rfc3339, seconds

NOW = parse_rfc3339("2026-01-01T00:30:00Z")
HOUR = minutes(60)
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"


def notes(**annotations):
    return {"metadata": {"annotations": annotations}}


def volumes(*volumes):
    return {"spec": {"volumes": list(volumes)}}


def merged(*parts):
    result = {}
    for part in parts:
        for section, fields in part.items():
            result.setdefault(section, {}).update(fields)
    return result


EMPTY_DIR = volumes({"name": "v", "emptyDir": {}})

# (what, settings, pod fields, outcome, reason). Upstream answers so in its own runs.
CASES = [
    ("replicated", {}, {}, "drain", None),
    ("bare", {}, {"kind": None}, "block", "NotReplicated"),
    ("bare, custom controllers allowed", {"custom": False}, {"kind": None}, "block", "NotReplicated"),
    ("bare, safe", {}, {"kind": None, **notes(**{SAFE: "true"})}, "drain", None),
    ("custom controller", {}, {"kind": "Widget"}, "block", "NotReplicated"),
    ("custom controller allowed", {"custom": False}, {"kind": "Widget"}, "drain", None),
    ("job", {}, {"kind": "Job"}, "drain", None),
    ("deleted job", {}, {"kind": "Job", "of": "gone"}, "block", "ControllerNotFound"),
    ("deleted job, any controller", {"custom": False}, {"kind": "Job", "of": "gone"}, "drain", None),
    ("stateful set", {}, {"kind": "StatefulSet"}, "drain", None),
    ("deleted stateful set", {}, {"kind": "StatefulSet", "of": "gone"}, "block", "ControllerNotFound"),
    ("small stateful set", {"replicas": 3}, {"kind": "StatefulSet"}, "drain", None),
    ("DaemonSet", {}, {"kind": "DaemonSet"}, "drain", None),
    ("annotated as DaemonSet", {}, {"kind": None, **notes(**{"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"})}, "drain", None),
    ("mirror", {}, {"kind": None, **notes(**{"kubernetes.io/config.mirror": "x"})}, "skip", None),
    ("deleted controller", {}, {"of": "ghost"}, "block", "ControllerNotFound"),
    ("deleted controller, custom controllers allowed", {"custom": False}, {"of": "ghost"}, "drain", None),
    ("too few replicas", {"replicas": 3}, {}, "block", "MinReplicasReached"),
    ("enough replicas", {"replicas": 2}, {}, "drain", None),
    ("ended", {}, {"kind": None, "spec": {"restartPolicy": "Never"}, "status": {"phase": "Failed"}}, "drain", None),
    ("failed", {}, {"kind": None, "spec": {"restartPolicy": "Always"}, "status": {"phase": "Failed"}}, "drain", None),
    ("ended but restarted", {}, {"kind": None, "spec": {"restartPolicy": "Always"}, "status": {"phase": "Succeeded"}}, "block", "NotReplicated"),
    ("on completion", {}, notes(**{SAFE: "on-completion"}), "wait", None),
    ("safe: other word", {}, notes(**{SAFE: "maybe"}), "drain", None),
    ("not safe", {}, notes(**{SAFE: "false"}), "block", "NotSafeToEvictAnnotation"),
    ("system", {}, {"namespace": "kube-system"}, "block", "UnmovableKubeSystemPod"),
    ("system allowed", {"system": False}, {"namespace": "kube-system"}, "drain", None),
    ("old system", {"system_wait": minutes(5)}, {"namespace": "kube-system"}, "drain", None),
    ("system of unknown age", {"system_wait": ZERO}, {"namespace": "kube-system", "metadata": {"creationTimestamp": None}}, "block", "UnmovableKubeSystemPod"),
    ("system with a budget", {}, {"namespace": "kube-system", "of": "dns"}, "drain", None),
    ("empty dir", {}, EMPTY_DIR, "block", "LocalStorageRequested"),
    ("empty dir allowed", {"local": False}, EMPTY_DIR, "drain", None),
    ("empty dir in memory", {}, volumes({"name": "v", "emptyDir": {"medium": "Memory"}}), "drain", None),
    ("empty dir listed", {}, merged(EMPTY_DIR, notes(**{SAFE_VOLUMES: "u,v"})), "drain", None),
    ("another one listed", {}, merged(EMPTY_DIR, notes(**{SAFE_VOLUMES: "u"})), "block", "LocalStorageRequested"),
    ("empty dir, safe pod", {}, merged(EMPTY_DIR, notes(**{SAFE: "true"})), "drain", None),
    ("host path", {}, volumes({"name": "v", "hostPath": {"path": "/x"}}), "block", "LocalStorageRequested"),
    ("config map volume", {}, volumes({"name": "v", "configMap": {}}), "drain", None),
    ("budget used up", {}, {"of": "tight"}, "block", "NotEnoughPdb"),
    ("budget used up, safe", {}, {"of": "tight", **notes(**{SAFE: "true"})}, "drain", None),
    ("budget that allows a disruption", {}, {"of": "loose"}, "drain", None),
]  # fmt: skip


def context(pdb, *, custom=True, local=True, system=True, replicas=0, system_wait=HOUR, now=NOW):
    settings = Settings(
        skip_nodes_with_custom_controller_pods=custom,
        skip_nodes_with_local_storage=local,
        skip_nodes_with_system_pods=system,
        min_replica_count=replicas,
        blocking_system_pod_distruption_timeout=system_wait,
    )
    pdbs = {
        ("default", "tight"): pdb("tight", "tight", 0),
        ("default", "loose"): pdb("loose", "loose", 1),
        ("kube-system", "dns"): pdb("dns", "dns", 1, namespace="kube-system"),
    }
    sets = {
        (namespace, name): msgspec.convert({"spec": {"replicas": 2}}, ReplicaSet)
        for namespace in ("default", "kube-system")
        for name in ("web", "tight", "loose", "dns")
    }
    owners = {
        "ReplicaSet": sets,
        "DaemonSet": {("default", "web"): DaemonSet()},
        "StatefulSet": {("default", "web"): StatefulSet()},
        "Job": {("default", "web"): Job()},
    }
    return DrainContext(
        now=now, settings=settings, allowances=Allowances.of(pdbs), owners=owners, rules=RULES
    )


@pytest.mark.parametrize(
    ("settings", "fields", "outcome", "reason"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_rules_answer_as_upstream(settings, fields, outcome, reason, pod, pdb):
    """Each kind of pod gets upstream's answer under each flag."""
    answer, _ = evaluate(pod("x", "n", **fields), context(pdb, **settings))
    assert (answer.outcome, answer.reason) == (outcome, reason)
    assert bool(answer.detail) == (outcome == "block")


def owned(kind, version, name="ghost", **metadata):
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"kind": None, "metadata": {"ownerReferences": [owner], **metadata}}


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        (owned("DaemonSet", "apps/v1"), "block"),
        (owned("DaemonSet", "apps.kruise.io/v1alpha1"), "drain"),
        (owned("StatefulSet", "apps/v1beta2"), "block"),
        (owned("StatefulSet", "apps.kruise.io/v1beta1"), "drain"),
        (owned("ReplicaSet", "apps/v1", annotations={DAEMON_SET_POD_ANNOTATION: "true"}), "drain"),
        (owned("ReplicaSet", "apps/v1"), "block"),
        (owned("ReplicaSet", "apps/v1", "unsized"), "drain"),
    ],
)
def test_only_owners_that_upstream_reads_must_exist(fields, outcome, pod, pdb):
    """Foreign sets of the same kind need not exist, and a set without a number has no minimum."""
    asked = context(pdb, replicas=1_000)
    asked.owners["ReplicaSet"]["default", "unsized"] = ReplicaSet()
    assert evaluate(pod("x", "n", **fields), asked)[0].outcome == outcome


def test_rules_are_in_upstreams_order():
    """The first answer wins, so the order of the rules is part of the contract."""
    assert [rule.name for rule in RULES] == [
        "Mirror", "LongTerminating", "ReplicaCount", "DaemonSet", "SafeToEvict", "Terminal", "OnCompletion",
        "Replicated", "System", "NotSafeToEvict", "LocalStorage", "PodDisruptionBudget",
    ]  # fmt: skip


def test_a_pod_whose_end_is_overdue_no_longer_counts(pod, pdb):
    """A deleted pod is skipped once its grace and 30 s more have passed, not at that very moment."""
    deleted = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:30:00Z"},
        "spec": {"terminationGracePeriodSeconds": 20},
    }
    late = pod("x", "n", kind=None, **deleted)
    at = after(NOW, seconds(50))
    assert evaluate(late, context(pdb, now=at))[0].outcome == "block"
    assert evaluate(late, context(pdb, now=at + 1))[0].outcome == "skip"


def test_prepared_verdicts_know_until_when_they_hold(pod, pdb):
    """Facts about a node are cached exactly until time alone would change them."""
    system = pod("x", "n", namespace="kube-system")
    prepared = prepare([system], context(pdb))
    assert settle(prepared, context(pdb)).blocked is not None
    until = prepared.valid_until
    assert evaluate(system, context(pdb, now=until - 1))[0].outcome == "block"
    assert evaluate(system, context(pdb, now=until))[0].outcome == "drain"


def test_moves_are_sorted_by_what_becomes_of_the_pods(pod, pdb):
    """DaemonSet pods stay with the node, mirror pods vanish with it; of the others those need a place that go on."""
    pods = [
        pod("a", "n"),
        pod("b", "n", kind="DaemonSet"),
        pod("c", "n", kind=None, **notes(**{"kubernetes.io/config.mirror": "x"})),
        pod("d", "n", **notes(**{SAFE: "on-completion"})),
        pod("e", "n", metadata={"deletionTimestamp": "2025-12-31T12:00:00Z"}),
    ]
    moves = pods_to_move(pods, context(pdb))
    assert [one.metadata.name for one in moves.pods] == ["a"]
    assert [one.metadata.name for one in moves.daemon_pods] == ["b"]
    assert [one.metadata.name for one in moves.waiting] == ["d"]
    assert [one.metadata.name for one in moves.skipped] == ["e"]


def test_the_first_blocking_pod_is_named(pod, pdb):
    """Of several pods that block, the first of the node is reported, with its rule."""
    moves = pods_to_move([pod("a", "n", of="tight"), pod("b", "n", kind=None)], context(pdb))
    assert (moves.blocked.pod.metadata.name, moves.blocked.rule) == ("a", "PodDisruptionBudget")
