"""What is wrong with a group's settings or with the program's rights is said, and the other groups go on."""

from __future__ import annotations

import pytest
from tests.clouds.aws.test_differences import PREFIX, group, play

from kubetide.units.time import after, minutes


def test_a_named_group_that_aws_never_knew_is_shown():
    """It is stale from the beginning and cannot grow; the others are as ever, and it serves once it is there."""

    async def story(cloud, aws, clock):
        unknown = cloud.views()["typo"]
        assert "knows no Auto Scaling group of this name in this account and region" in unknown.stale
        assert (unknown.max_size, unknown.instances, unknown.template) == (0, None, None)
        assert cloud.views()["a"].stale == ""
        clock.time = after(clock.time, minutes(2))
        assert (await cloud.refresh())[1] is unknown
        aws.world["groups"].append(group("typo", size=1, instances=["i-2"]))
        clock.time = after(clock.time, minutes(2))
        found = (await cloud.refresh())[1]
        assert (found.id, found.stale, found.max_size) == ("typo", "", 5)

    named = [("a", 0, 9), ("typo", 0, 5)]
    play(story, group("a", size=1, instances=["i-1"]), explicit=named)


def test_of_a_group_that_is_named_twice_the_first_bounds_hold():
    """Upstream leaves the bounds of a named group alone once it has them."""

    async def story(cloud, _aws, _clock):
        view = cloud.views()["a"]
        assert (view.min_size, view.max_size) == (1, 4)

    play(story, group("a", size=1, instances=["i-1"]), explicit=[("a", 1, 4), ("a", 0, 9)])


def test_bounds_that_aws_does_not_share_are_a_warning():
    """The bounds of the flag hold, and the loop would be refused in vain again and again at those of the group."""

    async def story(cloud, _aws, _clock):
        small, large, fits = (cloud.views()[one] for one in "abc")
        assert (small.min_size, small.max_size) == (0, 9)
        assert [
            "its own maximum size 3, which is below the 9 of --nodes" in one for one in small.warnings
        ] == [1]
        assert [
            "its own minimum size 2, which is above the 0 of --nodes" in one for one in large.warnings
        ] == [1]
        assert fits.warnings is None

    groups = group("a", size=1, most=3), group("b", size=2, least=2), group("c", size=0, most=20)
    play(story, *groups, explicit=[("a", 0, 9), ("b", 0, 9), ("c", 1, 9)])


def test_launches_that_are_suspended_are_a_warning():
    """Somebody, or AWS after a day of failures, has suspended them: machines are owed for ever without an error."""

    async def story(cloud, _aws, _clock):
        [warning] = cloud.views()["a"].warnings
        assert "Launch is suspended (User suspended at 2026-03-01)" in warning
        assert cloud.views()["b"].warnings is None

    def suspended(process):
        return [{"ProcessName": process, "SuspensionReason": "User suspended at 2026-03-01"}]

    groups = group("a", size=1), group("b", size=1)
    for raw, process in zip(groups, ("Launch", "AZRebalance"), strict=True):
        raw["SuspendedProcesses"] = suspended(process)
    play(story, *groups, explicit=[("a", 0, 9), ("b", 0, 9)])


def test_activities_that_may_not_be_read_are_a_warning():
    """The group has placeholders without an error, and says which right is missing."""

    async def story(cloud, _aws, _clock):
        view = cloud.views()["a"]
        assert [one.error for one in view.instances] == [None, None]
        assert "allow autoscaling:DescribeScalingActivities to the role" in view.warnings[0]
        assert cloud.views()["b"].warnings is None

    groups = group("a", size=2, instances=["i-1"]), group("b", size=1, instances=["i-2"])
    refused = {"DescribeScalingActivities": "AccessDenied"}
    play(story, *groups, explicit=[("a", 0, 9), ("b", 0, 9)], errors=refused)


def test_instance_types_that_may_not_be_read_are_a_warning():
    """The shipped table serves; of a type that is not in it the warning says why nobody knows it."""

    async def story(cloud, _aws, _clock):
        known, unknown = cloud.views()["a"], cloud.views()["b"]
        assert known.template is not None
        assert unknown.template_error == 'ASG "b" uses the unknown EC2 instance type "z99.large"'
        for view in (known, unknown):
            [warning] = view.warnings
            assert "shipped table" in warning
            assert "DescribeInstanceTypes: UnauthorizedOperation" in warning

    groups = group("a", size=0), group("b", size=0, LaunchConfigurationName="new")
    configurations = [
        {"LaunchConfigurationName": "lc", "InstanceType": "m5.large"},
        {"LaunchConfigurationName": "new", "InstanceType": "z99.large"},
    ]
    refused = {"DescribeInstanceTypes": "UnauthorizedOperation"}
    world = {"errors": refused, "launch_configurations": configurations}
    play(story, *groups, explicit=[("a", 0, 9), ("b", 0, 9)], **world)


TEMPLATE = {"LaunchTemplate": {"LaunchTemplateName": "lt", "Version": "7"}}
DATA = {"InstanceRequirements": {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1024}}}


@pytest.mark.parametrize(
    ("launch", "data", "why"),
    [
        ({"LaunchConfigurationName": "gone"}, None, "AWS knows no launch configuration gone"),
        (TEMPLATE, None, "AWS knows no version 7 of launch template lt"),
        (TEMPLATE, {}, "version 7 of launch template lt has neither an instance type nor requirements"),
        (TEMPLATE, DATA, "no instance type of the region meets its requirements"),
        ({"Status": "x"}, None, "the group has no launch template; give it one"),
    ],
)
def test_a_group_without_an_instance_type_says_why(launch, data, why):
    """Upstream's text goes before what is missing."""

    async def story(cloud, _aws, _clock):
        error = cloud.views()["a"].template_error
        assert error.startswith(f"could not find instance type for a: {why}")

    templates = [] if data is None else [{"name": "lt", "version": "7", "data": data}]
    play(story, group("a", size=0, **launch), explicit=[("a", 0, 9)], launch_templates=templates)


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("labels/team", "after k8s.io/cluster-autoscaler/node-template/ goes one of label/, taint/"),
        ("autoscaling-options/scaleDownUnneededTime", "no option scaleDownUnneededTime; use one of"),
        ("autoscaling-options/maxnodeprovisiontime", "no option maxnodeprovisiontime; use one of"),
    ],
)
def test_a_tag_that_nobody_reads_is_a_warning(tag, said):
    """A misspelled kind of tag, or an option that AWS has not, is named; upstream passes it over."""

    async def story(cloud, _aws, _clock):
        [warning] = cloud.views()["a"].warnings
        assert warning.startswith(f"tag {PREFIX}{tag}: ")
        assert said in warning

    play(story, group("a", size=0, tags=[(f"{PREFIX}{tag}", "15m")]), explicit=[("a", 0, 9)])


@pytest.mark.parametrize(
    ("code", "stays"), [("ThrottlingException", True), ("ResourceNotFoundException", False)]
)
def test_what_eks_said_last_holds_while_it_does_not_answer(code, stays):
    """Without its taints the template would draw pods that its nodes refuse; a node group that is gone says nothing."""

    async def story(cloud, aws, clock):
        aws.world["errors"] = {"DescribeNodegroup": code}
        clock.time = after(clock.time, minutes(7))
        [view] = await cloud.refresh()
        assert [taint.key for taint in view.template.node.spec.taints or ()] == (["k"] if stays else [])
        assert (view.template.node.metadata.labels.get("team") == "shop") is stays
        assert code in view.warnings[0]
        aws.world["errors"] = {}
        clock.time = after(clock.time, minutes(7))
        [view] = await cloud.refresh()
        assert view.warnings is None
        assert view.template.node.metadata.labels["team"] == "shop"

    managed = {
        "clusterName": "c",
        "nodegroupName": "n",
        "labels": {"team": "shop"},
        "taints": [{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}],
    }
    tags = [("eks:cluster-name", "c"), ("eks:nodegroup-name", "n")]
    play(story, group("a", size=0, tags=tags), explicit=[("a", 0, 9)], nodegroups=[managed])
