"""What the doctor says of node groups: maximum, backoff, warnings, priorities and zones."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.findings import found
from tests.nodes.frozen import START, group, node, pod

from kubetide.doctor import GroupStatus, Snapshot, diagnose
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.settings import Settings
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim
from kubetide.ports.cloud import Instance, InstanceError, Offering


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


def test_nodes_that_are_not_ready_are_to_be_repaired():
    """A group that is unhealthy lacks no quota; where the whole cluster is, that comes before all that follows from it."""
    lost = GroupStatus("g", 0, 9, 2, "Unhealthy")
    (one,) = found("group-backoff", group_statuses=(lost,))
    assert one.seen == "too many of its nodes are missing or not ready"
    assert one.fix.endswith("repair or delete these nodes")
    nodes = tuple(node(f"n{at}", ready=at < 2) for at in range(6))
    groups = (group("g", nodes=[one.metadata.name for one in nodes]),)
    big = pod("big", cpu="64")
    reported = diagnose(Snapshot(now=START, nodes=nodes, groups=groups, group_statuses=(lost,), pods=(big,)))
    reported = [one for one in reported if one.severity == "critical"]
    assert [one.check for one in reported] == ["cluster-health", "no-group", "group-backoff"]
    assert reported[0].object == "cluster"
    assert reported[0].seen.startswith(
        "4 of 6 nodes are not ready, more than --ok-total-unready-count=3 and "
    )
    assert reported[0].fix == reported[2].fix


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
        ("10: [x]\n10: [general, spot]", ["warning"], "10 stands twice: only the last list of each holds"),
        (
            "-5: [general]\n10: [spot]",
            ["warning"],
            "-5 is below -1: groups that match nothing higher are not",
        ),
        ("10: [spt, spot]", ["info", "info"], "no group matches spt"),
        ("10: [spot]", ["info"], "no expression matches general: not chosen while another group matches"),
    ],
)
def test_the_priorities_of_groups(text, severities, said):
    """Priorities that cannot be read hold for no group; a misspelt name matches none."""
    known = PriorityMap(found=True, priorities=text)
    reported = found("priorities", groups=(group("general"), group("spot-a")), priorities=known)
    assert [one.severity for one in reported] == severities
    assert said in "".join(one.seen for one in reported)
    assert {one.object for one in reported} <= {"ConfigMap kube-system/cluster-autoscaler-priority-expander"}


def test_a_missing_map_of_priorities_is_found_only_with_its_expander():
    """Without the expander `priority` nothing reads the map, so its absence is no finding."""
    assert found("priorities", priorities=PriorityMap()) == []
    (one,) = found("priorities", priorities=PriorityMap(), settings=Settings(expander="priority,random"))
    assert one.seen == "it is not there, so every group counts the same"


OF_THE_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def zonal(zone, key="topology.kubernetes.io/zone"):
    """Return a volume that only nodes of a zone can mount, and its claim."""
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
    bound = pod("db", node="n1", spec=OF_THE_CLAIM)
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
    """A waiting pod is not reported where a group of its volume's zone alone can grow beside the group over zones."""
    bound = pod("db", spec=OF_THE_CLAIM)

    def reported(alone):
        offerings = {"wide": ("a", "b"), "alone": (alone,)}
        groups = tuple(
            group(name, offerings=tuple(Offering(zone=zone) for zone in zones))
            for name, zones in offerings.items()
        )
        return len(found("zones", pods=(bound,), groups=groups, **zonal("a")))

    assert (reported("a"), reported("b")) == (0, 1)


def test_groups_that_the_cloud_scales_itself():
    """Each is named with what changes its size; others are not, and a cloud that does not say is no problem of a group."""
    groups = (group("a"), group("b"))
    rules = ["scaling policy cpu-70", "schedule night", "schedule day", "schedule noon"]
    (one,) = found(
        "scaling-policies", groups=groups, scaling_policies={"a": rules, "gone": ["schedule night"]}
    )
    assert (one.object, one.severity) == ("node group a", "critical")
    assert "scaling policy cpu-70, schedule night, schedule day and 1 more" in one.seen
    (unknown,) = found("scaling-policies", groups=groups, scaling_policies_error="AccessDenied")
    assert unknown.severity == "info"
    assert "AccessDenied" in unknown.seen
    assert found("scaling-policies", groups=groups) == []
