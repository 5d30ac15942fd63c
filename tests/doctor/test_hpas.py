"""What the doctor says of HPAs and VPAs: targets, requests, metrics, bounds and conflicts; one cause is one finding."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.findings import found, hpa, vpa, without_requests
from tests.nodes.frozen import START, deployment, pod, replica_set

from kubetide.doctor import Snapshot, diagnose
from kubetide.objects.vpa import VpaStatus
from kubetide.objects.workload import ReplicaSet
from kubetide.vertical.recommender.settings import Settings


def test_an_hpa_without_its_target():
    """A target that does not exist is critical, and the fix names those that do."""
    (one,) = found("hpa-target", hpas=(hpa("shop", "shpo"),), deployments=(deployment("shop", 1),))
    assert (one.severity, one.object) == ("critical", "HorizontalPodAutoscaler default/shop")
    assert "there are shop" in one.fix


def test_a_target_of_a_kind_that_cannot_be_read_is_not_missing():
    """Where Deployments may not be listed, none is called missing; that they are unread is reported."""
    snapshot = Snapshot(now=START, hpas=(hpa("shop", "shop"),), unread={"deployments": "forbidden"})
    (one,) = diagnose(snapshot)
    assert (one.check, one.object) == ("unread", "deployments")


def test_utilization_needs_requests():
    """An HPA by utilization over containers without requests never scales; a limit counts as a request."""
    (one,) = found("hpa-requests", hpas=(hpa("web", "web"),), deployments=(without_requests("web"),))
    assert "no cpu request in container app" in one.seen
    assert found("hpa-requests", hpas=(hpa("web", "web"),), deployments=(deployment("web", 1),)) == []
    limited = without_requests("web", limits={"cpu": "1"})
    assert found("hpa-requests", hpas=(hpa("web", "web"),), deployments=(limited,)) == []


def test_a_metric_that_fails_is_reported_in_the_words_of_the_controller():
    """ScalingActive=False names its reason; a person's own switch-off is no finding."""

    def with_condition(reason):
        condition = {"type": "ScalingActive", "status": "False", "reason": reason, "message": "no metrics"}
        return hpa("web", "web", extra={"status": {"conditions": [condition]}})

    deployments = (deployment("web", 1),)
    (one,) = found("hpa-metric", hpas=(with_condition("FailedGetPodsMetric"),), deployments=deployments)
    assert one.seen == "FailedGetPodsMetric: no metrics"
    assert found("hpa-metric", hpas=(with_condition("ScalingDisabled"),), deployments=deployments) == []


def test_a_metric_that_fails_has_the_fix_for_its_kind():
    """Pods without a node have no usage, whatever the metrics API serves; other metrics are served by other APIs."""

    def fix(reason, pods=()):
        condition = {"type": "ScalingActive", "status": "False", "reason": reason, "message": "no metrics"}
        failing = hpa("web", "web", extra={"status": {"conditions": [condition]}})
        made = {"deployments": (deployment("web", 1),), "replica_sets": (replica_set("web-1", 1, of="web"),)}
        (one,) = found("hpa-metric", hpas=(failing,), pods=pods, **made)
        return one.fix

    waiting, placed = pod("a", of="web-1"), pod("b", of="web-1", node="n")
    assert "kubectl top pods" in fix("FailedGetResourceMetric")
    assert fix("FailedGetResourceMetric", (waiting,)).startswith("see why its pods have no node")
    assert "kubectl top pods" in fix("FailedGetResourceMetric", (waiting, placed))
    assert "external metrics API" in fix("FailedGetExternalMetric", (waiting,))
    assert "kubetide explain hpa" in fix("InvalidMetricSourceType")


def test_a_container_that_the_pods_lack():
    """A container metric of a container that does not exist names those that do."""
    metric = {"name": "cpu", "container": "side", "target": {"type": "Utilization", "averageUtilization": 5}}
    wrong = hpa(
        "web",
        "web",
        extra={"spec": {"metrics": [{"type": "ContainerResource", "containerResource": metric}]}},
    )
    (one,) = found("hpa-metric", hpas=(wrong,), deployments=(deployment("web", 1),))
    assert "container side" in one.seen
    assert one.fix == "name one of app"


def test_two_hpas_on_one_target():
    """They are one finding, about the target, that names both."""
    (one,) = found("hpa-shared-target", hpas=(hpa("a", "web"), hpa("b", "web"), hpa("c", "api")))
    assert (one.object, one.seen) == ("Deployment default/web", "2 HPAs scale it: a, b")


def test_hpas_over_the_same_pods_are_reported_once_and_not_told_to_look_at_metrics():
    """Those of one target are a finding about the target; of two targets the selectors have to differ."""
    condition = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector", "message": "both"}
    extra = {"status": {"conditions": [condition]}}
    assert found("hpa-metric", hpas=(hpa("a", "web", extra=extra), hpa("b", "web", extra=extra))) == []
    alone, other = found("hpa-metric", hpas=(hpa("a", "web", extra=extra), hpa("b", "api", extra=extra)))
    assert alone.seen == "AmbiguousSelector: both"
    assert alone.fix == other.fix
    assert alone.fix.startswith("give the workloads selectors of which none matches the pods of another")


@pytest.mark.parametrize(
    ("message", "target", "named"),
    [
        ("missing request for cpu in container app of Pod web-1", without_requests("web"), ["hpa-requests"]),
        ("unable to fetch metrics from external metrics API", without_requests("web"), ["hpa-requests", "hpa-metric"]),
        ("missing request for cpu in container side of Pod web-1", deployment("web", 1), ["hpa-metric"]),
    ],
    ids=["the same cause", "another cause", "a container that is injected"],
)  # fmt: skip
def test_a_missing_request_is_reported_once(message, target, named):
    """The failing metric is a finding of its own only where the workload's own requests do not explain it."""
    failed = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetResourceMetric",
        "message": f"the HPA was unable to compute the replica count: failed to get cpu utilization: {message}",
    }
    objects = {
        "hpas": (hpa("web", "web", extra={"status": {"conditions": [failed]}}),),
        "deployments": (target,),
    }
    assert [check for check in ("hpa-requests", "hpa-metric") if found(check, **objects)] == named


def test_an_hpa_that_cannot_move_or_is_at_its_maximum():
    """Equal bounds and a maximum that is in the way are warnings."""
    limited = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    reported = found(
        "hpa-bounds",
        hpas=(
            hpa("still", "a", min_replicas=3, max_replicas=3),
            hpa("full", "b", extra={"status": {"conditions": [limited]}}),
            hpa("free", "c"),
        ),
    )
    assert [one.object for one in reported] == [
        "HorizontalPodAutoscaler default/full",
        "HorizontalPodAutoscaler default/still",
    ]


def test_vpas_without_a_target_of_their_own():
    """A target that is not there, and two VPAs that would change the pods of one; one that only recommends is no rival."""
    web = deployment("web", 1)
    (one,) = found("vpa-target", vpas=(vpa("wbe"),), deployments=(web,))
    assert (one.object, one.seen) == (
        "VerticalPodAutoscaler default/v",
        "its target Deployment wbe does not exist in namespace default",
    )
    meta = msgspec.structs.replace(vpa("web").metadata, name="w")
    other = msgspec.structs.replace(vpa("web"), metadata=meta)
    (one,) = found("vpa-target", vpas=(vpa("web"), other), deployments=(web,))
    assert (one.object, one.seen) == ("Deployment default/web", "2 VPAs would change its pods: v, w")
    quiet = vpa("web", updatePolicy={"updateMode": "Off"})
    assert found("vpa-target", vpas=(quiet, other), deployments=(web,)) == []
    assert found("vpa-target", vpas=(vpa("wbe"),), unread={"deployments": "forbidden"}) == []


@pytest.mark.parametrize(
    ("ref", "seen", "fix"),
    [
        (None, "it has no targetRef", "name the controller of its pods in spec.targetRef, or delete it"),
        (
            {"apiVersion": "v1", "kind": "Pod", "name": "web-0"},
            "its target Pod web-0 is no controller that makes pods",
            "name the Deployment, StatefulSet or DaemonSet of its pods",
        ),
        (
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1"},
            "its target ReplicaSet web-1 belongs to Deployment web",
            "name Deployment web as its target",
        ),
        ({"apiVersion": "example.com/v1", "kind": "Fleet", "name": "web"}, "", ""),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "", ""),
    ],
    ids=["none", "pod", "owned", "custom", "topmost"],
)
def test_vpas_whose_target_is_not_the_topmost_controller_of_pods(ref, seen, fix):
    """What the recommender refuses is named with what to write; nothing is said of a custom kind that is not known."""
    web = deployment("web", 1)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    body = {"metadata": {"name": "web-1", "namespace": "default", "ownerReferences": [owner]}, "spec": {}}
    owned = msgspec.convert(body, ReplicaSet)
    reported = found(
        "vpa-target", vpas=(vpa("web", targetRef=ref),), deployments=(web,), replica_sets=(owned,)
    )
    assert [(one.seen, one.fix) for one in reported] == ([(seen, fix)] if seen else [])


@pytest.mark.parametrize(
    ("spec", "conflicts"),
    [
        ({}, True),
        ({"updatePolicy": {"updateMode": "Off"}}, False),
        ({"resourcePolicy": {"containerPolicies": [{"controlledResources": ["memory"]}]}}, False),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Off"}]}}, False),
        ({"resourcePolicy": {"containerPolicies": [{"minAllowed": {"cpu": "1"}}]}}, True),
    ],
)
def test_an_hpa_and_a_vpa_on_one_resource(spec, conflicts):
    """Only a VPA that changes the request that the HPA divides by is in its way."""
    reported = found("hpa-and-vpa", hpas=(hpa("web", "web"),), vpas=(vpa("web", **spec),))
    assert bool(reported) is conflicts


LEFT = {"conditions": [{"type": "ResourcesLeftToHPA", "status": "True"}]}
CPU, MEMORY = (
    {"recommendation": {"containerRecommendations": [{"containerName": "app", "target": {name: "1"}}]}}
    for name in ("cpu", "memory")
)


@pytest.mark.parametrize(
    ("status", "settings", "named", "severity"),
    [
        ({}, {}, "", "info"),
        (LEFT, {"leave_to_hpa": False}, "", "info"),
        (MEMORY, {}, "", "info"),
        (CPU, {}, "", "warning"),
        ({}, {"leave_to_hpa": False}, "", "warning"),
        ({}, {}, "theirs", "warning"),
    ],
    ids=["ours by default", "its status says so", "the other resource", "recommended all the same", "option off", "another recommender"],
)  # fmt: skip
def test_a_resource_that_the_recommender_leaves_to_the_hpa_is_no_conflict(status, settings, named, severity):
    """The status of the VPA says what its recommender does; without one, the settings of ours."""
    recommenders = {"recommenders": [{"name": named}]} if named else {}
    served = msgspec.structs.replace(vpa("web", **recommenders), status=msgspec.convert(status, VpaStatus))
    (one,) = found("hpa-and-vpa", hpas=(hpa("web", "web"),), vpas=(served,), recommender=Settings(**settings))
    assert (one.severity, one.object) == (severity, "VerticalPodAutoscaler default/v")
    assert ("leaves cpu of Deployment web to HorizontalPodAutoscaler default/web" in one.seen) is (
        severity == "info"
    )
