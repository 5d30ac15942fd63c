"""Where the AWS provider differs from upstream on purpose, each with its reason, and its bounds under faults."""

from __future__ import annotations

import asyncio

import pytest
from tests.clouds.fakes.fleet import Clock
from tests.conformance.clouds_aws_rules import RULES, expected_template
from tests.conformance.clouds_aws_world import PretendedAws

from kubetide.clouds.aws.activities import shortage
from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.config import aws_config
from kubetide.clouds.aws.discovery import joined
from kubetide.clouds.aws.ids import region_of
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, after, minutes, parse_rfc3339, seconds

PREFIX = "k8s.io/cluster-autoscaler/node-template/"


def instance(name, lifecycle="InService"):
    return {
        "InstanceId": name,
        "AvailabilityZone": "eu-west-1a",
        "LifecycleState": lifecycle,
        "HealthStatus": "Healthy",
    }


def group(name, *, size, instances=(), least=0, most=9, tags=(), **launch):
    return {
        "AutoScalingGroupName": name,
        "MinSize": least,
        "MaxSize": most,
        "DesiredCapacity": size,
        "AvailabilityZones": ["eu-west-1a"],
        "Instances": [instance(one) for one in instances],
        "Tags": [{"Key": key, "Value": value} for key, value in tags],
        **(launch or {"LaunchConfigurationName": "lc"}),
    }


def play(story, *groups, explicit=(), flags=(), **world):
    """Run a story with the provider over a pretended AWS."""
    clock = Clock()
    aws = PretendedAws(clock)
    configurations = [{"LaunchConfigurationName": "lc", "InstanceType": "m5.large"}]
    aws.set_world({"groups": list(groups), "launch_configurations": configurations, **world})
    api = AwsApi(aws)
    cloud = AwsCloud(
        api,
        clock,
        groups=[NodeSpec(*one) for one in explicit],
        discovery=joined(flags),
        types=InstanceTypes(api),
    )

    async def main():
        await cloud.refresh()
        aws.begin()
        await story(cloud, aws, clock)

    asyncio.run(main())
    return cloud


async def nothing(_cloud, _aws, _clock):
    return None


def provider_id(name):
    return f"aws:///eu-west-1a/{name}"


def mixed(*types):
    template = {"LaunchTemplateName": "lt"}
    overrides = [{"InstanceType": one} for one in types]
    return {
        "MixedInstancesPolicy": {
            "LaunchTemplate": {"LaunchTemplateSpecification": template, "Overrides": overrides}
        }
    }


def test_a_group_of_several_types_promises_the_least():
    """least of all types: what fits the template fits each of the types."""
    cloud = play(nothing, group("a", size=0, **mixed("g5.12xlarge", "m5.large")), explicit=[("a", 0, 9)])
    assert cloud.views()["a"].template.node.status.capacity == {
        "pods": "110",
        "cpu": "2",
        "memory": str(8 << 30),
        "nvidia.com/gpu": "0",
    }


@pytest.mark.parametrize(
    ("tags", "of_eks", "cpu"),
    [
        ([(f"{PREFIX}resources/cpu", "x")], {}, "2"),
        ([(f"{PREFIX}resources/cpu", "3")], {}, "48"),
        ([], {f"{PREFIX}resources/cpu": "3"}, "48"),
    ],
    ids=["unreadable", "of the group", "of EKS"],
)
def test_the_least_of_types_gives_way_to_what_a_tag_says(tags, of_eks, cpu):
    """The rule of recorded cases, as the provider: an amount that cannot be read is none."""
    raw = group("a", size=0, tags=tags, **mixed("g5.12xlarge", "m5.large"))
    recorded = {
        "labels": {"cluster-name": "c", "nodegroup-name": "n"},
        "taints": [],
        "capacity": {"cpu": "48"},
        "allocatable": {"cpu": "48"},
    }
    world = {"nodegroups": [{"clusterName": "c", "nodegroupName": "n", "tags": of_eks}]}
    assert expected_template(world, raw, recorded)["capacity"]["cpu"] == cpu


def test_requirements_of_a_plain_group_promise_their_minimum():
    """least of requirements: a launch template with requirements counts as in a mixed group."""
    data = {"InstanceRequirements": {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1024}}}
    cloud = play(
        nothing,
        group("a", size=0, LaunchTemplate={"LaunchTemplateName": "lt", "Version": "1"}),
        explicit=[("a", 0, 9)],
        launch_templates=[{"name": "lt", "version": "1", "data": data}],
        types_for_requirements=["p3.2xlarge"],
    )
    capacity = cloud.views()["a"].template.node.status.capacity
    assert (capacity["cpu"], capacity["memory"]) == ("1", str(1 << 30))


def test_several_overrides_with_requirements_promise_the_least_of_them():
    """Whichever of them AWS takes, what fits the template fits the node."""
    overrides = [
        {"InstanceRequirements": {"VCpuCount": {"Min": cores}, "MemoryMiB": {"Min": memory}}}
        for cores, memory in ((4, 2048), (2, 4096))
    ]
    spec = {"LaunchTemplateName": "lt", "Version": "1"}
    launch = {"LaunchTemplate": {"LaunchTemplateSpecification": spec, "Overrides": overrides}}
    cloud = play(
        nothing,
        group("a", size=0, MixedInstancesPolicy=launch),
        explicit=[("a", 0, 9)],
        launch_templates=[{"name": "lt", "version": "1", "data": {"InstanceType": "p3.2xlarge"}}],
        types_for_requirements=["m5.xlarge"],
    )
    capacity = cloud.views()["a"].template.node.status.capacity
    assert (capacity["cpu"], capacity["memory"]) == ("2", str(2 << 30))


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1a", "us-east-1"),
        ("us-west-2-lax-1a", "us-west-2"),
        ("us-gov-west-1c", "us-gov-west-1"),
        ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        ("ap-southeast-2b", "ap-southeast-2"),
    ],
)
def test_a_local_zone_is_in_its_parents_region(zone, region):
    """parent region: nodes are labelled with it."""
    assert region_of(zone) == region


def test_a_taint_without_value_counts():
    """taint without value: EKS gives nodes the taint."""
    tags = [(f"{PREFIX}label/cluster-name", "c"), (f"{PREFIX}label/nodegroup-name", "n")]
    managed = {"clusterName": "c", "nodegroupName": "n", "taints": [{"key": "k", "effect": "NO_EXECUTE"}]}
    cloud = play(nothing, group("a", size=0, tags=tags), explicit=[("a", 0, 9)], nodegroups=[managed])
    [taint] = cloud.views()["a"].template.node.spec.taints
    assert (taint.key, taint.value, taint.effect) == ("k", "", "NoExecute")


def test_groups_of_other_clusters_are_not_found():
    """A group must have the tags of all discovery flags, as upstream has it: one flag may name the cluster."""
    cloud = play(
        nothing,
        group("ours", size=0, tags=[("enabled", ""), ("cluster", "prod")]),
        group("other", size=0, tags=[("enabled", ""), ("cluster", "test")]),
        group("off", size=0, tags=[("cluster", "prod")]),
        flags=["asg:tag=enabled", "asg:tag=cluster=prod"],
    )
    assert list(cloud.views()) == ["ours"]


def test_what_is_owed_is_being_created_and_can_be_withdrawn():
    """placeholders are being created, withdrawal of open orders: existing machines stay."""

    async def story(cloud, aws, _clock):
        assert [one.state for one in cloud.views()["a"].instances] == ["Running", "Creating", "Creating"]
        with pytest.raises(CloudError, match="attempt to delete existing nodes"):
            await cloud.decrease_target_size("a", 3)
        await cloud.decrease_target_size("a", 2)
        assert [call["params"]["DesiredCapacity"] for call in aws.changes()] == [1]

    play(story, group("a", size=3, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_what_was_withdrawn_has_no_placeholder_any_more():
    """Until the next refresh too, a group lists no machines beyond its lowered size, as upstream."""

    async def story(cloud, _aws, _clock):
        await cloud.increase_size("a", 3)
        await cloud.decrease_target_size("a", 3)
        view = cloud.views()["a"]
        assert (view.target_size, [one.provider_id for one in view.instances]) == (1, [provider_id("i-1")])

    play(story, group("a", size=1, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_a_machine_that_came_meanwhile_is_not_withdrawn():
    """A decrease looks again first: AWS would end a machine that may have pods."""

    async def story(cloud, aws, _clock):
        aws.group("a")["Instances"].append(instance("i-2"))
        await cloud.delete_nodes("a", [provider_id("i-placeholder-a-1")])
        with pytest.raises(CloudError, match="existingNodes: 2"):
            await cloud.decrease_target_size("a", 1)
        assert aws.changes() == []

    play(story, group("a", size=2, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_only_the_named_placeholder_is_withdrawn():
    """only the named placeholders: the others stay requested."""

    async def story(cloud, aws, _clock):
        await cloud.delete_nodes("a", [provider_id("i-placeholder-a-1")])
        assert [call["params"]["DesiredCapacity"] for call in aws.changes()] == [3]

    play(story, group("a", size=4, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_a_batch_never_passes_the_minimum():
    """never below the minimum: the batch is refused as a whole, unless it is forced."""

    async def story(cloud, aws, _clock):
        doomed = [provider_id("i-1"), provider_id("i-2")]
        with pytest.raises(CloudError, match="min size reached"):
            await cloud.delete_nodes("a", doomed)
        assert aws.changes() == []
        await cloud.delete_nodes("a", doomed, force=True)
        assert len(aws.changes()) == 2

    play(story, group("a", size=3, instances=["i-1", "i-2", "i-3"]), explicit=[("a", 2, 9)])


def test_an_instance_is_ended_once():
    """ended once: neither twice in a batch nor again before the next refresh."""

    async def story(cloud, aws, _clock):
        await cloud.delete_nodes("a", [provider_id("i-1")] * 2)
        await cloud.delete_nodes("a", [provider_id("i-1")])
        assert len(aws.changes()) == 1
        assert cloud.views()["a"].target_size == 2

    play(story, group("a", size=3, instances=["i-1", "i-2", "i-3"]), explicit=[("a", 0, 9)])


def test_a_bad_group_does_not_stop_the_others():
    """a bad group alone: it has a warning, and the others are as ever."""
    cloud = play(
        nothing,
        group("a", size=1, least=5, most=3, tags=[("x", "")]),
        group("b", size=1, tags=[("x", "")]),
        flags=["asg:tag=x"],
    )
    views = cloud.views()
    assert (views["a"].min_size, views["a"].max_size) == (3, 3)
    assert "minimum size 5 is above maximum size 3" in views["a"].warnings[0]
    assert views["b"].warnings is None


def test_types_and_requirements_at_once():
    """An override with both says so in place of a template, and the other groups are as ever."""
    raw = mixed("m5.large")
    raw["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"][0]["InstanceRequirements"] = {}
    cloud = play(nothing, group("a", size=0, **raw), group("b", size=0), explicit=[("a", 0, 9), ("b", 0, 9)])
    assert "has both an instance type and instance requirements" in cloud.views()["a"].template_error
    assert cloud.views()["b"].template is not None


def test_every_rule_is_pinned_here():
    """Each rule of the runner has a test in this file that names it."""
    text = __import__("pathlib").Path(__file__).read_text(encoding="utf-8")
    assert [rule.name for rule in RULES if f"{rule.name}:" not in text and f"{rule.name}, " not in text] == []


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def test_an_old_answer_does_not_undo_an_increase():
    """AWS may show the size of before our change for a while; ours holds until then."""

    async def story(cloud, aws, clock):
        await cloud.increase_size("a", 2)
        aws.group("a")["DesiredCapacity"] = 1
        clock.time = after(clock.time, seconds(20))
        cloud._next = Instant(0)
        [seen] = await cloud.refresh()
        assert seen.target_size == 3
        clock.time = after(clock.time, minutes(2))
        [seen] = await cloud.refresh()
        assert seen.target_size == 1

    play(story, group("a", size=1, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_an_old_answer_does_not_undo_deletions():
    """AWS may show the size of before the first of several deletions; an increase of that would buy them back."""

    async def story(cloud, aws, clock):
        await cloud.delete_nodes("a", [provider_id("i-1"), provider_id("i-2")])
        aws.group("a")["DesiredCapacity"] = 3
        clock.time = after(clock.time, seconds(10))
        [seen] = await cloud.refresh()
        assert seen.target_size == 1
        await cloud.increase_size("a", 1)
        assert aws.changes()[-1]["params"]["DesiredCapacity"] == 2

    play(story, group("a", size=3, instances=["i-1", "i-2", "i-3"]), explicit=[("a", 0, 9)])


def test_an_increase_ends_no_machines_that_others_have_asked_for_since():
    """A schedule has raised the size since the last refresh: a group that is as large by now gets no order."""

    async def story(cloud, aws, _clock):
        aws.group("a")["DesiredCapacity"] = 5
        await cloud.increase_size("a", 1)
        assert (aws.changes(), cloud.views()["a"].target_size) == ([], 5)
        await cloud.increase_size("a", 1)
        assert [call["params"]["DesiredCapacity"] for call in aws.changes()] == [6]

    play(story, group("a", size=1, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_a_refused_refresh_says_why_and_keeps_the_groups():
    """A throttled refresh is an error of that cause; the groups are as they were."""

    async def story(cloud, aws, clock):
        clock.time = after(clock.time, minutes(2))
        aws.world["errors"] = {"DescribeAutoScalingGroups": "Throttling"}
        with pytest.raises(CloudError) as caught:
            await cloud.refresh()
        assert caught.value.cause == "Throttled"
        assert list(cloud.views()) == ["a"]

    play(story, group("a", size=1, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_a_group_that_vanishes_and_comes_back():
    """A named group that AWS does not know any more is stale until it is back."""

    async def story(cloud, aws, clock):
        held = aws.world["groups"]
        aws.world["groups"] = []
        clock.time = after(clock.time, minutes(2))
        [vanished] = await cloud.refresh()
        assert "AWS knows no Auto Scaling group" in vanished.stale
        aws.world["groups"] = held
        clock.time = after(clock.time, minutes(2))
        [back] = await cloud.refresh()
        assert back.stale == ""

    play(story, group("a", size=1, instances=["i-1"]), explicit=[("a", 0, 9)])


def test_malformed_tags_are_warnings_of_their_group():
    """Each malformed tag is named; the rest of the group's tags hold."""
    tags = [
        (f"{PREFIX}resources/cpu", "many"),
        (f"{PREFIX}taint/t", "NoSchedule"),
        (f"{PREFIX}autoscaling-options/scaledownunneededtime", "soon"),
        (f"{PREFIX}label/team", "shop"),
    ]
    cloud = play(nothing, group("a", size=0, tags=tags), explicit=[("a", 0, 9)])
    view = cloud.views()["a"]
    assert [
        any(word in one for one in view.warnings)
        for word in ("resources/cpu", "taint/t", "scaledownunneededtime")
    ] == [True] * 3
    assert view.template.node.metadata.labels["team"] == "shop"


def test_warm_machines_are_no_nodes():
    """Machines of a warm pool are counted apart."""
    raw = group("a", size=1, instances=["i-1"])
    raw["Instances"].append(instance("i-warm", "Warmed:Stopped"))
    view = play(nothing, raw, explicit=[("a", 0, 9)]).views()["a"]
    assert [one.provider_id for one in view.instances] == [provider_id("i-1")]
    assert view.debug == "a (0:9, warm pool of 1)"


@pytest.mark.parametrize(
    ("message", "code", "cause"),
    [
        (
            "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity",
            "VcpuLimitExceeded",
            "Quota",
        ),
        (
            "There is no Spot capacity available that matches your request.",
            "UnfulfillableCapacity",
            "OutOfCapacity",
        ),
        ("You are not authorized to perform this operation.", "AccessDenied", "Permission"),
        ("The stars are wrong", "placeholder-cannot-be-fulfilled", "OutOfCapacity"),
    ],
)
def test_why_machines_do_not_come(message, code, cause):
    """A failed activity's text says why; one that is not known counts as a stock-out, as upstream has it."""
    activities = [{"StatusCode": "Failed", "StatusMessage": message, "StartTime": "2026-03-02T00:00:00Z"}]
    found = shortage(activities, None)
    assert (found.error_code, found.cause) == (code, cause)
    assert shortage(activities, parse_rfc3339("2026-03-02T00:00:01Z")) is None


def test_a_service_override_needs_all_of_its_keys():
    """A section without a required key is refused by name, and so is an unknown key."""
    good = '[ServiceOverride "1"]\nService=ec2\nRegion=r\nURL=http://x\nSigningRegion=r\n'
    [endpoint] = aws_config(good, {"AWS_REGION": "r", "AWS_MAX_ATTEMPTS": "7"}).endpoints
    assert (endpoint.service, endpoint.url) == ("ec2", "http://x")
    with pytest.raises(CloudConfigError, match='ServiceOverride "1" needs url'):
        aws_config('[ServiceOverride "1"]\nService=ec2\nRegion=r\n', {})
    with pytest.raises(CloudConfigError, match="unknown key colour"):
        aws_config("[Global]\nColour=red\n", {})
    with pytest.raises(
        CloudConfigError, match=r"cloud-config: line 1: '\{\}' is neither a section nor a key"
    ):
        aws_config("{}", {})
    with pytest.raises(CloudConfigError, match="repeats service ec2"):
        aws_config(good + good.replace('"1"', '"2"'), {})
    with pytest.raises(CloudConfigError, match="AWS_MAX_ATTEMPTS"):
        aws_config("", {"AWS_MAX_ATTEMPTS": "many"})


def test_what_has_not_changed_is_the_same_object():
    """At rest a refresh of many groups gives back the groups that it gave before."""
    groups = [
        group(f"g{number}", size=2, instances=[f"i-{number}0", f"i-{number}1"]) for number in range(150)
    ]

    async def story(cloud, aws, clock):
        clock.time = after(clock.time, minutes(2))
        before = cloud.views()
        views = await cloud.refresh()
        assert [call["api"] for call in aws.calls] == ["DescribeAutoScalingGroups"] * 2
        assert all(view is before[view.id] for view in views)

    play(story, *groups, explicit=[(f"g{number}", 0, 20) for number in range(150)])
