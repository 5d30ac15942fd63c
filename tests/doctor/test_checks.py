"""Each check of the doctor: what it finds, and what it leaves alone."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from tests.nodes.frozen import START, deployment, group, node, pod, replica_set

from kubetide.doctor import GroupStatus, Server, Snapshot, diagnose
from kubetide.doctor.registry import CHECKS, Check
from kubetide.nodes.facts.nodes import NOMINATION_TAINT
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.settings import Settings
from kubetide.objects.cluster import Lease
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.objects.workload import Deployment
from kubetide.ports.cloud import Instance, InstanceError, Offering
from kubetide.testing import builders
from kubetide.units.time import before, format_rfc3339, hours, minutes, seconds


def found(check, **objects):
    """Return what one check finds, and ask all the others that they do not fail."""
    everything = diagnose(Snapshot(now=START, **objects))
    assert [one for one in everything if one.object == "the check itself"] == []
    return [one for one in everything if one.check == check]


def hpa(name, target, **fields):
    return msgspec.convert(builders.hpa(name, target, namespace="default", **fields), HorizontalPodAutoscaler)


def pdb(**fields):
    body = builders.pdb("budget", {"app": "web"}, namespace="default", **fields)
    return msgspec.convert(body, PodDisruptionBudget)


def vpa(target, **spec):
    body = {
        "metadata": {"name": "v", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}, **spec},
    }
    return msgspec.convert(body, VerticalPodAutoscaler)


def without_requests(name):
    body = builders.deployment(name, namespace="default", replicas=2)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    return msgspec.convert(body, Deployment)


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


def test_an_hpa_without_its_target():
    """A target that does not exist is critical, and the fix names those that do."""
    (one,) = found("hpa-target", hpas=(hpa("shop", "shpo"),), deployments=(deployment("shop", 1),))
    assert (one.severity, one.object) == ("critical", "HorizontalPodAutoscaler default/shop")
    assert "there are shop" in one.fix


def elastic(name, target="web", *, accepted=True, said=None, **spec):
    horizontal = {"minReplicas": 1, "maxReplicas": 3, "metrics": []}
    conditions = [{"type": "Accepted", "status": "True"}] if accepted else []
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "horizontal": horizontal,
            **spec,
        },
        "status": {"conditions": conditions, "schedule": said},
    }
    return msgspec.convert(body, ElasticWorkload)


def test_horizontal_sections_are_looked_at_as_hpas_are():
    """A section without its target, by utilization without requests, or with one size; a schedule's own size is none."""
    web, bare = deployment("web", 1), without_requests("bare")
    everything = {
        "deployments": (web, bare),
        "elastic": (
            elastic("lost", "gone"),
            elastic("bare", "bare"),
            elastic("fixed", horizontal={"minReplicas": 2, "maxReplicas": 2, "metrics": []}),
        ),
    }
    for check, name in (("hpa-target", "lost"), ("hpa-requests", "bare"), ("hpa-bounds", "fixed")):
        (one,) = found(check, **everything)
        assert one.object == f"ElasticWorkload default/{name}"
    schedule = {"rules": [{"at": "0 8 * * *", "replicas": 2}]}
    held = elastic("held", schedule=schedule, said={"minReplicas": 2, "maxReplicas": 2})
    assert found("hpa-bounds", deployments=(web,), elastic=(held,)) == []


def test_elastic_workloads_that_nothing_follows():
    """One that is wrong, one beside an HPA, one that no controller has answered; one that is followed is left alone."""
    web = deployment("web", 1)

    def seen(*objects, **more):
        return [one.seen for one in found("elastic", deployments=(web,), elastic=objects, **more)]

    assert seen(elastic("good")) == []
    assert seen(elastic("new", accepted=False)) == ["it has no condition: no controller has answered it"]
    (text,) = seen(elastic("good"), hpas=(hpa("other", "web"),))
    assert text.startswith("Conflict: HorizontalPodAutoscaler other is in the way of Deployment web")
    (text,) = seen(elastic("bad", horizontal={"minReplicas": 3, "maxReplicas": 2}))
    assert text.startswith("InvalidSpec: spec.horizontal.maxReplicas")
    bad = elastic("good", schedule={"rules": []}, said={"problems": ["rules[0].at: 99 is no minute"]})
    assert seen(bad) == ["rules[0].at: 99 is no minute"]


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
    limited = without_requests("web")
    spec = msgspec.to_builtins(limited)
    spec["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    limited = msgspec.convert(spec, Deployment)
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


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"min_available": 2}, "minAvailable is 2, and at most 2 run"),
        ({"min_available": "90%"}, "minAvailable is 90%, which is 2 pods, and at most 2 run"),
        ({"min_available": "50%"}, ""),
        ({"min_available": 1}, ""),
        ({"max_unavailable": 0}, "maxUnavailable is 0"),
        ({"max_unavailable": "0%"}, "maxUnavailable is 0%"),
        ({"max_unavailable": "1%"}, ""),
    ],
)
def test_a_budget_that_can_never_be_met(fields, seen):
    """Shares are rounded up as the disruption controller does; a budget of no workload is left alone."""
    reported = found("budgets", pdbs=(pdb(**fields),), deployments=(deployment("web", 2),))
    assert [one.seen.split(" (")[0] for one in reported] == ([seen] if seen else [])
    assert found("budgets", pdbs=(pdb(**fields),)) == []


def test_a_budget_is_measured_by_the_maximum_of_the_hpa():
    """minAvailable 2 can be met when the HPA brings a third pod."""
    objects = {"pdbs": (pdb(min_available=2),), "deployments": (deployment("web", 2),)}
    assert found("budgets", **objects, hpas=(hpa("web", "web", max_replicas=3),)) == []
    assert len(found("budgets", **objects, hpas=(hpa("web", "web", max_replicas=2),))) == 1


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


def test_a_pod_that_no_group_can_hold():
    """The finding has each group's refusal and, as the fix, the smallest change that was decided again."""
    big = [pod(f"big-{at}", memory="64Gi", of="big") for at in range(3)]
    (one,) = found("no-group", pods=tuple(big), groups=(group("g"),))
    assert one.object == "Pod default/big-0 (and 2 like it)"
    assert "g: Insufficient memory" in one.seen
    assert one.fix == "lower memory request from 64Gi to <= 16Gi (group g)"
    assert found("no-group", pods=(pod("small"),), groups=(group("g"),)) == []


def test_groups_at_their_maximum_matter_while_pods_wait():
    """The finding is information until a pod waits; without a cloud the status ConfigMap provides sizes."""
    full = group("g", nodes=["n1"], maximum=1)
    assert [one.severity for one in found("group-maximum", groups=(full,))] == ["info"]
    assert [one.severity for one in found("group-maximum", groups=(full,), pods=(pod("a"),))] == ["warning"]
    reported = found(
        "group-maximum", group_statuses=(GroupStatus("told", 0, 2, 2), GroupStatus("free", 0, 2, 1))
    )
    assert [one.object for one in reported] == ["node group told"]


def test_groups_that_the_cloud_does_not_deliver_for():
    """Backoff is reported from the status ConfigMap with its error, and machines that failed from the cloud."""
    backed_off = GroupStatus("spot", 0, 9, 1, "Backoff", "STOCKOUT", "no c5d.large in zone-a")
    failed = Instance(
        provider_id="x", state="Creating", error=InstanceError(error_code="QUOTA", error_message="too many")
    )
    reported = found(
        "group-backoff",
        group_statuses=(backed_off, GroupStatus("well", 0, 9, 1, "NoActivity")),
        groups=(group("other", instances=[failed]),),
    )
    assert [(one.object, one.severity) for one in reported] == [
        ("node group other", "critical"),
        ("node group spot", "critical"),
    ]
    assert "STOCKOUT: no c5d.large in zone-a" in reported[1].seen


def test_what_the_cloud_says_of_its_groups():
    """A provider's warnings are findings about the group."""
    (one,) = found("group-warnings", groups=(group("g", warnings=("it has scaling policy cpu-60",)),))
    assert one.seen == "it has scaling policy cpu-60"


def test_a_group_without_a_template_of_the_cloud_may_have_a_live_node():
    """The node loop goes by that node, as with the provider `labels`, which knows no other template."""
    unknown = msgspec.structs.replace(group("g", nodes=["n1"]), template=None, template_error="no tags")
    (one,) = found("group-warnings", groups=(unknown,))
    assert one.seen == "nobody can say what its nodes look like: no tags"
    assert found("group-warnings", groups=(unknown,), nodes=(node("n1"),)) == []


@pytest.mark.parametrize(
    ("text", "severities", "said"),
    [
        ("10: [spot]\n20: ['.*']", [], ""),
        (None, ["warning"], "it has no key `priorities`"),
        ("10: [spot\n", ["warning"], "nothing of it holds: Can't parse YAML"),
        ("10: ['(']", ["warning"], "Can't compile regexp rule for priority 10 and rule ("),
        ("10: [spt, spot]", ["info", "info"], "no group matches spt"),
        ("10: [spot]", ["info"], "no expression matches general: not chosen while another group matches"),
    ],
)
def test_the_priorities_of_groups(text, severities, said):
    """What cannot be read holds nothing; a name that is written wrongly matches no group."""
    known = PriorityMap(found=True, priorities=text)
    reported = found("priorities", groups=(group("general"), group("spot-a")), priorities=known)
    assert [one.severity for one in reported] == severities
    assert said in "".join(one.seen for one in reported)
    assert {one.object for one in reported} <= {"ConfigMap kube-system/cluster-autoscaler-priority-expander"}


def test_a_map_of_priorities_is_missed_by_its_expander_alone():
    """Without the expander nothing reads it."""
    assert found("priorities", priorities=PriorityMap()) == []
    (one,) = found("priorities", priorities=PriorityMap(), settings=Settings(expander="priority,random"))
    assert one.seen == "it is not there, so every group counts the same"


def zonal(zone, key="topology.kubernetes.io/zone"):
    volume = {
        "metadata": {"name": "pv"},
        "spec": {
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}
                    ]
                }
            }
        },
    }
    claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv"}}
    return {
        "volumes": (msgspec.convert(volume, PersistentVolume),),
        "claims": (msgspec.convert(claim, PersistentVolumeClaim),),
    }


def test_a_zonal_volume_in_a_group_over_zones():
    """A pod with a volume in one zone is reported where its group is over several, and not in a group of one zone."""
    bound = pod(
        "db",
        node="n1",
        spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
    )
    nodes = (node("n1", labels={"topology.kubernetes.io/zone": "a"}),)

    def reported(*zones, key="topology.kubernetes.io/zone"):
        offerings = tuple(Offering(zone=zone) for zone in zones)
        groups = (group("g", nodes=["n1"], offerings=offerings),)
        return found("zones", pods=(bound,), nodes=nodes, groups=groups, **zonal("a", key))

    (one,) = reported("a", "b")
    assert one.seen == "its volume is in zone a, and node group g is over zones a, b"
    assert reported("a", "b", key="topology.gke.io/zone") == [one]
    assert reported("a") == []


def test_a_pod_without_a_node_may_have_a_group_of_its_zone():
    """Beside a group over zones, one of the volume's zone alone can grow for a waiting pod: nothing is reported."""
    bound = pod("db", spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]})

    def reported(alone):
        offerings = {"wide": ("a", "b"), "alone": (alone,)}
        groups = tuple(
            group(name, offerings=tuple(Offering(zone=zone) for zone in zones))
            for name, zones in offerings.items()
        )
        return len(found("zones", pods=(bound,), groups=groups, **zonal("a")))

    assert (reported("a"), reported("b")) == (0, 1)


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


def test_a_node_that_nobody_opens():
    """Ready for long, and still closed to pods; one that has just come, or is not ready, is left alone."""
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
    """Two writers of one status lately are critical; an old entry that a handover left is not."""
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
