"""Scaling groups that are created like a pattern: by the Alibaba provider, and by the whole node loop."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from tests.clouds.creating import FleetWorld, create_fill_empty_and_delete
from tests.clouds.fakes.alibaba import KEYS, REGION, FakeAlibaba
from tests.clouds.fakes.direct import Direct
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import served

from kubetide.clouds.alibaba.api import AlibabaApi, refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.units.time import minutes

PATTERN = "asg-workers"
LARGE = f"auto-{PATTERN}-ecs-g6-4xlarge-{REGION}"
MARK = "tag kubetide.dev/create of the scaling configuration"
NODES = (NodeSpec(PATTERN, 0, 3),)


def make_pattern(alibaba, types="ecs.g6.4xlarge ecs.c6.large", *, group=None, configuration=None, tags=None):
    """Make a group over two zones a pattern whose machines join by user data, as the API describes it."""
    alibaba.groups[PATTERN] = {
        "ScalingGroupName": "workers",
        "ActiveScalingConfigurationId": "asc-workers",
        "DefaultCooldown": 0,
        "GroupType": "ECS",
        "HealthCheckType": "ECS",
        "LoadBalancerIds": {"LoadBalancerId": ["lb-1"]},
        "MaxInstanceLifetime": 0,
        "MaxSize": 20,
        "MinSize": 0,
        "MultiAZPolicy": "BALANCE",
        "OnDemandBaseCapacity": 0,
        "RemovalPolicies": {"RemovalPolicy": ["NewestInstance"]},
        "ScalingPolicy": "release",
        "VServerGroups": {
            "VServerGroup": [
                {
                    "LoadBalancerId": "lb-2",
                    "VServerGroupAttributes": {
                        "VServerGroupAttribute": [{"VServerGroupId": "rsp-1", "Port": 80, "Weight": 100}]
                    },
                }
            ]
        },
        "VSwitchIds": {"VSwitchId": ["vsw-h", "vsw-i"]},
        **(group or {}),
    }
    given = {"kubetide.dev/create": types, "team": "shop", **(tags or {})}
    alibaba.configurations["asc-workers"] = {
        "ScalingConfigurationName": "workers",
        "DataDisks": {"DataDisk": [{"Size": 200, "Category": "cloud_essd", "DeleteWithInstance": True}]},
        "HostName": "",
        "ImageId": "img-1",
        "InstanceType": "ecs.g6.large",
        "InternetMaxBandwidthOut": 0,
        "KeyPairName": "shop",
        "LoadBalancerWeight": 50,
        "SecurityGroupId": "sg-1",
        "SecurityGroupIds": {"SecurityGroupId": []},
        "SpotDuration": 1,
        "SpotStrategy": "NoSpot",
        "SystemDiskCategory": "cloud_essd",
        "SystemDiskSize": 120,
        "Tags": {"Tag": [{"Key": key, "Value": value} for key, value in given.items()]},
        "UserData": "am9pbg==",
        **(configuration or {}),
    }


async def keys():
    return KEYS


@asynccontextmanager
async def world(*, desired=True, **pattern):
    """A pattern and a plain group on a server, and what makes providers over it."""
    clock = Clock()
    fleet = Fleet(clock)
    alibaba = FakeAlibaba(fleet, clock, desired=desired)
    make_pattern(alibaba, **pattern)
    for name in (PATTERN, "asg-plain"):
        fleet.add(name)
    async with served(alibaba) as address, HttpSender() as send:
        api = AlibabaApi(
            Rest(send, clock, refusal), clock, keys, REGION, endpoint=lambda _host: f"{address}/"
        )
        yield alibaba, clock, lambda *more: AlibabaCloud(api, (*NODES, *more), REGION, clock)


@pytest.mark.parametrize("desired", [True, False], ids=["desired capacity", "total capacity"])
@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
def test_alibaba_passes_the_battery_of_creation(case, desired):
    """Groups like a pattern are created and deleted as the port promises."""

    async def main():
        async with world(desired=desired) as (_, clock, connect):
            await case(CloudUnderTest(connect(), clock, group=PATTERN, kept=PATTERN, patience=minutes(10)))

    asyncio.run(main())


def test_a_group_is_like_its_pattern():
    """It has a configuration with another type, one zone's vSwitch, and the pattern's disks, keys and balancers."""

    async def main():
        async with world() as (alibaba, _, connect):
            cloud = connect()
            candidates = {one.new.id: one for one in await cloud.group_candidates()}
            assert list(candidates) == [
                f"auto-{PATTERN}-ecs-{kind}-{REGION}-{zone}"
                for kind in ("c6-large", "g6-4xlarge")
                for zone in "hi"
            ]
            meant = candidates[f"{LARGE}-i"]
            made = await cloud.create_group(meant.new)
            expected = replace(meant.group, exists=True, instances=(), debug=made.debug)
            assert replace(made.template, source="") == replace(expected.template, source="")
            assert replace(made, template=None) == replace(expected, template=None)
            [asg] = alibaba.groups.keys() - {PATTERN}
            await cloud.increase_size(made.id, 1)
            assert alibaba.fleet.groups[asg].target == 1, "ours has the group's name, and Alibaba its id"
            assert alibaba.groups[asg]["LifecycleState"] == "Active"
            own = alibaba.groups[asg]["ActiveScalingConfigurationId"]
            return made, alibaba.created[asg], alibaba.created[own], asg

    made, group, configuration, asg = asyncio.run(main())
    labels = made.template.node.metadata.labels
    assert (labels["team"], labels["topology.kubernetes.io/zone"]) == ("shop", f"{REGION}-i")
    assert not any("kubetide" in label for label in labels)
    assert [one.zone for one in made.offerings] == [f"{REGION}-i"]
    assert group == {
        "ScalingGroupName": f"{LARGE}-i",
        "MinSize": "0",
        "MaxSize": "3",
        "DesiredCapacity": "0",
        "DefaultCooldown": "0",
        "HealthCheckType": "ECS",
        "MultiAZPolicy": "BALANCE",
        "ScalingPolicy": "release",
        "RemovalPolicy.1": "NewestInstance",
        "LoadBalancerIds": '["lb-1"]',
        "VServerGroup.1.LoadBalancerId": "lb-2",
        "VServerGroup.1.VServerGroupAttribute.1.VServerGroupId": "rsp-1",
        "VServerGroup.1.VServerGroupAttribute.1.Port": "80",
        "VServerGroup.1.VServerGroupAttribute.1.Weight": "100",
        "VSwitchIds.1": "vsw-i",
        "Tag.1.Key": "kubetide.dev/created-from",
        "Tag.1.Value": PATTERN,
        "Tag.1.Propagate": "false",
    }
    assert json.loads(configuration.pop("Tags")) == {"team": "shop", "kubetide.dev/created-from": PATTERN}
    assert configuration == {
        "ScalingGroupId": asg,
        "ScalingConfigurationName": f"{LARGE}-i",
        "InstanceType": "ecs.g6.4xlarge",
        "ImageId": "img-1",
        "InternetMaxBandwidthOut": "0",
        "KeyPairName": "shop",
        "LoadBalancerWeight": "50",
        "SecurityGroupId": "sg-1",
        "SpotStrategy": "NoSpot",
        "SystemDisk.Category": "cloud_essd",
        "SystemDisk.Size": "120",
        "DataDisk.1.Size": "200",
        "DataDisk.1.Category": "cloud_essd",
        "DataDisk.1.DeleteWithInstance": "true",
        "UserData": "am9pbg==",
    }


def test_a_later_process_finds_what_an_earlier_one_created():
    """Groups are found by their tag and are still this program's to delete, also when the pattern lost its mark."""

    async def main():
        async with world() as (alibaba, clock, connect):
            earlier = connect()
            first, second, *_ = await earlier.group_candidates()
            made = [await earlier.create_group(one.new) for one in (first, second)]
            later = connect()
            assert [one.id for one in await later.refresh()] == [PATTERN, *(one.id for one in made)]
            alibaba.configurations["asc-workers"]["Tags"] = {"Tag": []}
            await clock.sleep(minutes(11))
            seen = await later.refresh()
            assert [one.id for one in seen if one.autoprovisioned] == [one.id for one in made]
            assert await later.group_candidates() == ()
            for one in made:
                await later.delete_group(one.id)
            assert [one.id for one in await later.refresh()] == [PATTERN]
            assert alibaba.fleet.groups.keys() == {PATTERN, "asg-plain"}

    asyncio.run(main())


def test_a_group_that_a_person_names_is_no_longer_ours_to_delete():
    """With ``--nodes`` somebody has taken over a group that was created: it stays, however empty."""

    async def main():
        async with world() as (alibaba, _, connect):
            cloud = connect()
            await cloud.create_group((await cloud.group_candidates())[0].new)
            [asg] = alibaba.groups.keys() - {PATTERN}
            later = connect(NodeSpec(asg, 0, 3))
            [group] = [one for one in await later.refresh() if one.id == asg]
            assert not group.autoprovisioned
            with pytest.raises(CloudError, match="--nodes names it"):
                await later.delete_group(asg)
            assert asg in alibaba.fleet.groups

    asyncio.run(main())


def test_a_group_that_was_left_half_made_is_found_and_goes():
    """A process that ends before it gives a group its configuration leaves one that a later process deletes when empty."""

    async def main():
        async with world() as (alibaba, _, connect):
            cloud = connect()
            made = await cloud.create_group((await cloud.group_candidates())[0].new)
            [asg] = alibaba.groups.keys() - {PATTERN}
            alibaba.groups[asg] |= {"ActiveScalingConfigurationId": "", "LifecycleState": "Inactive"}
            later = connect()
            [group] = [one for one in await later.refresh() if one.id == made.id]
            assert (group.autoprovisioned, group.target_size, group.instances, group.stale) == (
                True,
                0,
                (),
                "",
            )
            assert (group.template, bool(group.template_error)) == (None, True)
            with pytest.raises(CloudError, match="of this name already"):
                await later.create_group((await later.group_candidates())[0].new)
            await later.delete_group(made.id)
            assert asg not in alibaba.fleet.groups

    asyncio.run(main())


def test_disks_of_several_categories_retain_them_all():
    """Alibaba takes the first available category; another one beside them would be refused."""
    disk = {"Size": 200, "Category": "cloud_essd", "Categories": {"Category": ["cloud_auto", "cloud_essd"]}}

    async def main():
        async with world(configuration={"DataDisks": {"DataDisk": [{"Size": 40}, disk]}}) as (
            alibaba,
            _,
            connect,
        ):
            cloud = connect()
            await cloud.create_group((await cloud.group_candidates())[0].new)
            [asg] = alibaba.groups.keys() - {PATTERN}
            return alibaba.created[alibaba.groups[asg]["ActiveScalingConfigurationId"]]

    query = asyncio.run(main())
    assert {key: value for key, value in query.items() if key.startswith("DataDisk")} == {
        "DataDisk.1.Size": "40",
        "DataDisk.2.Size": "200",
        "DataDisk.2.Categories.1": "cloud_auto",
        "DataDisk.2.Categories.2": "cloud_essd",
    }


def test_a_group_that_is_listed_late_is_there_at_once():
    """A group that was just created is known and grows, also while the cloud's list does not have it yet."""

    async def main():
        async with world() as (alibaba, clock, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            alibaba.knows_tags = False
            made = await cloud.create_group(new)
            assert made.id == new.id
            await cloud.increase_size(made.id, 1)
            await clock.sleep(minutes(2))
            [group] = [one for one in await cloud.refresh() if one.id == made.id]
            assert (group.target_size, len(group.instances), group.stale) == (1, 1, "")

    asyncio.run(main())


def test_what_is_refused():
    """Names that are taken, machines that came since, and refusals are errors; no group is left behind."""

    async def main():
        async with world() as (alibaba, _, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            alibaba.groups["asg-plain"] = {"ScalingGroupName": new.id}
            with pytest.raises(CloudError, match="there is a scaling group of this name already"):
                await cloud.create_group(new)
            del alibaba.groups["asg-plain"]
            for action in ("CreateScalingGroup", "CreateScalingConfiguration", "EnableScalingGroup"):
                alibaba.errors = [(action, "Forbidden.RAM", 403)]
                with pytest.raises(CloudError) as caught:
                    await cloud.create_group(new)
                assert caught.value.cause == "Permission"
                assert alibaba.fleet.groups.keys() == {PATTERN, "asg-plain"}
            made = await cloud.create_group(new)
            [asg] = alibaba.groups.keys() - {PATTERN}
            alibaba.fleet.grow(asg, 1)
            with pytest.raises(CloudError, match="it has machines"):
                await cloud.delete_group(made.id)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"tags": {"ack.alibabacloud.com/nodepool-id": "np1"}}, "ACK manages it"),
        ({"group": {"GroupType": "ECI"}}, "not of ECS instances"),
        ({"group": {"VSwitchIds": None}}, "no vSwitches"),
        ({"configuration": {"UserData": ""}}, "no user data"),
        ({"configuration": {"HostName": "node"}}, "names its machines' hosts"),
        ({"configuration": {"SpotStrategy": "SpotWithPriceLimit"}}, "price limit"),
        ({"configuration": {"DedicatedHostId": "dh-1"}}, "dedicated hosts"),
        (
            {"configuration": {"NetworkInterfaces": {"NetworkInterface": [{"InstanceType": "Primary"}]}}},
            "network interfaces",
        ),
    ],
)
def test_what_cannot_be_copied_is_an_obstacle(parts, words):
    """A group that another manages, or whose machines are of its own type, is no pattern, and says why."""

    async def main():
        async with world(**parts) as (_, _, connect):
            cloud = connect()
            assert await cloud.group_candidates() == ()
            [group] = await cloud.refresh()
            [warning] = group.warnings
            assert warning.startswith(f"{MARK}: no group can be created like this one: ")
            assert words in warning

    asyncio.run(main())


def test_what_cannot_be_read_leaves_the_groups_alone():
    """An unknown type, and vSwitches that may not be read, are warnings; groups are shown, and at rest little is asked."""

    async def main():
        async with world(types="ecs.g6.4xlarge ecs.huge ecs.g8y.large") as (alibaba, clock, connect):
            cloud = connect()
            alibaba.errors = [("DescribeVSwitches", "Forbidden.RAM", 403)] * 2
            [group] = await cloud.refresh()
            assert not alibaba.errors
            *unfit, unread = group.warnings
            assert unfit == [
                f"{MARK}: instance type ecs.huge is not known; correct it",
                f"{MARK}: instance type ecs.g8y.large is left out: it is ARM, and the pattern's machines are X86",
            ]
            assert (
                unread == "no group can be created like this one: its vSwitches cannot be read: Forbidden.RAM"
            )
            assert await cloud.group_candidates() == ()
            [group] = await cloud.refresh()
            assert group.warnings == tuple(unfit)
            assert [one.new.id for one in await cloud.group_candidates()] == [f"{LARGE}-h", f"{LARGE}-i"]
            alibaba.calls.clear()
            await clock.sleep(minutes(1))
            await cloud.refresh()
            await cloud.group_candidates()
            assert alibaba.calls == [
                "DescribeScalingGroups",
                "DescribeScalingGroups",
                "DescribeScalingInstances",
            ]

    asyncio.run(main())


@pytest.mark.slow
def test_the_loop_creates_a_group_and_deletes_it_again():
    """Pods that no group's machines can hold get a group of their own; it goes when it has been empty for a while."""

    def connect(fleet, clock):
        alibaba = FakeAlibaba(fleet, clock)
        make_pattern(alibaba, "ecs.g6.4xlarge")
        rest = Rest(Direct(alibaba), clock, refusal)
        api = AlibabaApi(rest, clock, keys, REGION, endpoint=lambda host: f"http://{host}/")
        return AlibabaCloud(api, (NodeSpec(PATTERN, 0, 9),), REGION, clock)

    def node_id(_group, machine):
        return f"{REGION}.i-{machine}"

    def world_of(clock, groups, **settings):
        return FleetWorld(clock, groups, connect=connect, node_id=node_id, **settings)

    create_fill_empty_and_delete(PATTERN, world_of, begins="asg-made")
