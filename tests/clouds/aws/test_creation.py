"""Auto Scaling groups that are created like a pattern: by the provider, and by the whole node loop."""

from __future__ import annotations

import asyncio
import itertools

import pytest

pytest.importorskip("moto", reason="moto is a development dependency")

from msgspec.structs import replace
from tests.clouds.aws.moto_aws import REGION, SlowAws, make_group
from tests.clouds.aws.test_whole_loop import AwsWorld
from tests.clouds.creating import CREATED_CPU, PATTERN_CPU, create_fill_empty_and_delete
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.creation import CREATE, CREATED
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.objects.node import Taint
from kubetide.ports.cloud import NewGroup
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.units.time import minutes

NUMBERS = itertools.count(1)
TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"


def subnets(server):
    """Return a subnet of zone a and one of zone b, of a network of their own."""
    vpc = server.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return [
        server.ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ab")
    ]


def make_pattern(server, *, types="c5.4xlarge m5.large", tags=(), **more):
    """Make a group of its own name over both zones that is a pattern, and return the name and its subnets."""
    name = f"pattern-{next(NUMBERS)}"
    make_group(server, name, tags=[(CREATE, types), *tags], **more)
    nets = subnets(server)
    server.asg.update_auto_scaling_group(AutoScalingGroupName=name, VPCZoneIdentifier=",".join(nets))
    return name, nets


def provider(server, *names, boot_s=5):
    clock = Clock()
    aws = SlowAws(server.client, clock, boot_s=boot_s)
    groups = [NodeSpec(name, 0, 3) for name in names]
    return AwsCloud(AwsApi(aws), clock, groups=groups, types=InstanceTypes(None)), aws, clock


def described(server, name):
    [found] = server.asg.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return found


@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
def test_aws_passes_the_battery_of_creation(case, server):
    """Groups like a pattern are created and deleted as the port promises."""
    name, _ = make_pattern(server)
    cloud, _, clock = provider(server, name)

    async def main():
        await case(CloudUnderTest(cloud, clock, group=name, kept=name, patience=minutes(10)))

    asyncio.run(main())


def test_a_group_is_like_its_pattern(server):
    """It launches the pattern's template with another type, in one zone's subnet, with the tags that are not of a machine."""
    name, nets = make_pattern(
        server,
        tags=[
            ("kubernetes.io/cluster/prod", "owned"),
            (f"{TEMPLATE}label/team", "shop"),
            (f"{TEMPLATE}taint/dedicated", "shop:NoSchedule"),
            (f"{TEMPLATE}resources/ephemeral-storage", "100Gi"),
            (f"{TEMPLATE}resources/nvidia.com/gpu", "1"),
        ],
    )
    cloud, _, _ = provider(server, name)

    async def main():
        candidates = {one.new.id: one for one in await cloud.group_candidates()}
        assert list(candidates) == [
            f"auto-{name}-{kind}-{REGION}{zone}" for kind in ("c5-4xlarge", "m5-large") for zone in "ab"
        ]
        meant = candidates[f"auto-{name}-c5-4xlarge-{REGION}b"]
        made = await cloud.create_group(meant.new)
        assert made == replace(meant.group, exists=True, instances=(), debug=made.debug)
        return made

    made = asyncio.run(main())
    node = made.template.node
    assert node.metadata.labels["team"] == "shop"
    assert node.metadata.labels["topology.kubernetes.io/zone"] == f"{REGION}b"
    assert node.spec.taints == (Taint(key="dedicated", value="shop", effect="NoSchedule"),)
    assert (node.status.capacity["cpu"], node.status.capacity["ephemeral-storage"]) == ("16", "100Gi")
    assert node.status.capacity.get("nvidia.com/gpu") in {None, "0"}
    found = described(server, made.id)
    assert found["VPCZoneIdentifier"] == nets[1]
    assert (found["MinSize"], found["MaxSize"], found["DesiredCapacity"]) == (0, 3, 0)
    launch = found["MixedInstancesPolicy"]["LaunchTemplate"]
    assert launch["LaunchTemplateSpecification"]["LaunchTemplateName"] == f"lt-{name}"
    assert [one["InstanceType"] for one in launch["Overrides"]] == ["c5.4xlarge"]
    tags = {one["Key"]: one["Value"] for one in found["Tags"]}
    assert tags[CREATED] == name
    assert tags["kubernetes.io/cluster/prod"] == "owned"
    assert CREATE not in tags
    assert f"{TEMPLATE}resources/nvidia.com/gpu" not in tags


def test_a_later_process_finds_what_an_earlier_one_created(server):
    """Groups of a pattern that is given by name are found by their tag, and are still this program's to delete."""
    name, _ = make_pattern(server, types="m5.large")

    async def main():
        earlier, _, _ = provider(server, name)
        first = (await earlier.group_candidates())[0]
        made = await earlier.create_group(first.new)
        later, _, _ = provider(server, name)
        assert made in await later.refresh()
        await later.delete_group(made.id)
        assert made.id not in [one.id for one in await later.refresh()]

    asyncio.run(main())


def test_a_group_that_a_person_names_is_no_longer_ours_to_delete(server):
    """With ``--nodes`` somebody has taken over a group that was created: it stays, however empty."""
    name, _ = make_pattern(server, types="m5.large")

    async def main():
        earlier, _, _ = provider(server, name)
        made = await earlier.create_group((await earlier.group_candidates())[0].new)
        later, _, _ = provider(server, name, made.id)
        [group] = [one for one in await later.refresh() if one.id == made.id]
        assert not group.autoprovisioned
        with pytest.raises(CloudError, match="--nodes names it"):
            await later.delete_group(made.id)
        assert described(server, made.id)["MinSize"] == 0

    asyncio.run(main())


def test_a_group_that_is_found_late_is_there_at_once(server):
    """A group that was just created is known and grows, also while AWS does not find it by its tags yet."""
    name, _ = make_pattern(server, types="m5.large")
    cloud, aws, clock = provider(server, name)

    async def main():
        new = (await cloud.group_candidates())[0].new
        aws.untagged.add(new.id)
        assert (await cloud.create_group(new)).id == new.id
        await cloud.increase_size(new.id, 1)
        await clock.sleep(minutes(2))
        await cloud.refresh()
        await clock.sleep(minutes(1))
        [group] = [one for one in await cloud.refresh() if one.id == new.id]
        assert (group.target_size, len(group.instances)) == (1, 1)

    asyncio.run(main())


def test_what_cannot_be_created_is_refused(server):
    """Labels, types and zones that no pattern has, and a name that is taken, are refused with the group's name."""
    name, _ = make_pattern(server, types="m5.large")
    cloud, aws, _ = provider(server, name)

    async def main():
        first = (await cloud.group_candidates())[0].new
        wrong = {
            "labels": replace(first, labels={"a": "b"}),
            "no pattern for c5.large": replace(first, instance_type="c5.large"),
            f"in {REGION}z": replace(first, zones=(f"{REGION}z",)),
            "no pattern": NewGroup(id="other", max_size=1, instance_type="m5.large", zones=first.zones),
        }
        for words, new in wrong.items():
            with pytest.raises(CloudError, match=f"node group {new.id}: .*{words}"):
                await cloud.create_group(new)
        assert "CreateAutoScalingGroup" not in aws.calls
        aws.refuse = {"CreateAutoScalingGroup": "AccessDenied"}
        with pytest.raises(CloudError) as caught:
            await cloud.create_group(first)
        assert caught.value.cause == "Permission"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"types": "m5.large c9.huge"}, "instance type c9.huge is not known"),
        ({"types": "m5.large m6g.large"}, "instance type m6g.large is left out: it is arm64"),
        ({"tags": [("eks:nodegroup-name", "workers")]}, "EKS manages it"),
    ],
)
def test_a_pattern_says_what_is_wrong_with_it(server, more, words):
    """A pattern that is of no use, or whose tag names what is not there, has a warning; the rest holds."""
    name, _ = make_pattern(server, **more)
    cloud, _, _ = provider(server, name)

    async def main():
        candidates = await cloud.group_candidates()
        [group] = await cloud.refresh()
        return candidates, group

    candidates, group = asyncio.run(main())
    assert any(words in one for one in group.warnings)
    assert {one.new.instance_type for one in candidates} == ({"m5.large"} if "types" in more else set())


def test_nothing_more_is_asked_where_there_is_no_pattern(server):
    """Without a pattern a refresh makes the calls that it made before, and no group can be created."""
    make_group(server, "plain")
    cloud, aws, _ = provider(server, "plain")

    async def main():
        await cloud.refresh()
        assert await cloud.group_candidates() == ()

    asyncio.run(main())
    assert aws.calls.count("DescribeAutoScalingGroups") == 1


class CreatingWorld(AwsWorld):
    """A world whose pattern's groups may be created while it runs."""

    @property
    def names(self):
        found = self.server.asg.describe_auto_scaling_groups()["AutoScalingGroups"]
        names = [one["AutoScalingGroupName"] for one in found]
        return [one for one in names if one in self.first or one.startswith(f"auto-{self.first[0]}-")]

    @names.setter
    def names(self, given):
        self.first = tuple(given)

    def cpu(self, group):
        return CREATED_CPU if group.startswith("auto-") else PATTERN_CPU


@pytest.mark.slow
def test_the_loop_creates_a_group_and_deletes_it_again(server):
    """Pods that no group's machines can hold get a group of their own; it goes when it has been empty for a while."""
    name, _ = make_pattern(server, types="c5.4xlarge", max_size=9)

    def world_of(clock, groups, **settings):
        return CreatingWorld(clock, groups, server=server, **settings)

    create_fill_empty_and_delete(name, world_of, begins=f"auto-{name}-c5-4xlarge-{REGION}")
