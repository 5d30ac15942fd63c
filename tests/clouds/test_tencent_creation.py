"""Auto Scaling groups that are created like a pattern: by the Tencent provider, and by the whole node loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from tests.clouds.creating import FleetWorld, create_fill_empty_and_delete
from tests.clouds.fakes.direct import Direct
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import served
from tests.clouds.fakes.tencent import KEYS, REGION, FakeTencent

from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.clouds.tencent.api import TencentApi, refusal
from kubetide.clouds.tencent.cloud import TencentCloud
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.units.time import minutes

PATTERN = "asg-workers"
LARGE = "auto-asg-workers-s5-4xlarge32-ap-guangzhou"
TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
NODES = (NodeSpec(PATTERN, 0, 3),)


def tag(key, value):
    return {"Key": key, "Value": value, "ResourceType": None}


def make_pattern(tencent, types="S5.4XLARGE32 S5.LARGE8", *, group=None, configuration=None):
    """Make a group over two zones a pattern whose machines join by user data, as the API describes it."""
    tencent.groups[PATTERN] = {
        "AutoScalingGroupName": "workers",
        "LaunchConfigurationId": "asc-workers",
        "DefaultCooldown": 60,
        "ForwardLoadBalancerSet": [],
        "HostNameIndexSettings": None,
        "InstanceAllocationPolicy": "LAUNCH_CONFIGURATION",
        "MaxSize": 20,
        "ProjectId": 0,
        "ServiceSettings": {"ReplaceMonitorUnhealthy": False, "ScalingMode": None},
        "SpotMixedAllocationPolicy": None,
        "SubnetIdSet": ["subnet-3", "subnet-4"],
        "TerminationPolicySet": ["NEWEST_INSTANCE"],
        "VpcId": "vpc-1",
        "ZoneSet": [],
        "Tags": [
            tag("kubetide.dev/create", types),
            tag("cluster", "shop"),
            tag("tencentcloud:pool", "blue"),
            tag(f"{TEMPLATE}label/team", "shop"),
            tag(f"{TEMPLATE}resources/ephemeral-storage", "100Gi"),
            tag(f"{TEMPLATE}resources/nvidia.com/gpu", "1"),
        ],
        **(group or {}),
    }
    tencent.configurations["asc-workers"] = {
        "LaunchConfigurationName": "workers",
        "CamRoleName": "nodes",
        "DataDisks": [],
        "ImageFamily": "",
        "ImageId": "img-1",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "InstanceMarketOptions": None,
        "InstanceType": "S5.MEDIUM4",
        "InstanceTypes": ["S5.MEDIUM4"],
        "LoginSettings": {"KeyIds": ["skey-1"]},
        "ProjectId": 0,
        "SecurityGroupIds": ["sg-1"],
        "SystemDisk": {"DiskType": "CLOUD_BSSD", "DiskSize": 100, "DiskId": None},
        "UserData": "am9pbg==",
        "Tags": [],
        **(configuration or {}),
    }


async def keys():
    return KEYS


@asynccontextmanager
async def world(*, page=1, **pattern):
    """A pattern and a plain group on a server, and what makes providers over it."""
    clock = Clock()
    fleet = Fleet(clock)
    tencent = FakeTencent(fleet, clock, page)
    make_pattern(tencent, **pattern)
    for name in (PATTERN, "asg-plain"):
        fleet.add(name)
    async with served(tencent) as address, HttpSender() as send:
        api = TencentApi(
            Rest(send, clock, refusal), clock, keys, REGION, endpoint=lambda _service: f"{address}/"
        )
        yield tencent, clock, lambda *more: TencentCloud(api, (*NODES, *more), REGION, clock)


@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
def test_tencent_passes_the_battery_of_creation(case):
    """Groups like a pattern are created and deleted as the port promises."""

    async def main():
        async with world() as (_, clock, connect):
            await case(CloudUnderTest(connect(), clock, group=PATTERN, kept=PATTERN, patience=minutes(10)))

    asyncio.run(main())


def test_a_group_is_like_its_pattern():
    """It has a launch configuration with another type, one zone's subnet, and the tags that are not of a machine."""

    async def main():
        async with world() as (tencent, _, connect):
            cloud = connect()
            candidates = {one.new.id: one for one in await cloud.group_candidates()}
            assert list(candidates) == [
                f"auto-asg-workers-{kind}-ap-guangzhou-{zone}"
                for kind in ("s5-4xlarge32", "s5-large8")
                for zone in (3, 4)
            ]
            meant = candidates[f"{LARGE}-4"]
            made = await cloud.create_group(meant.new)
            [(asg, group)] = [one for one in tencent.groups.items() if one[0] != PATTERN]
            expected = replace(meant.group, exists=True, instances=(), debug=made.debug)
            assert replace(made.template, source="") == replace(expected.template, source="")
            assert replace(made, template=None) == replace(expected, template=None)
            await cloud.increase_size(made.id, 1)
            assert tencent.fleet.groups[asg].target == 1, "ours has the group's name, and Tencent its id"
            return made, group, tencent.configurations[group["LaunchConfigurationId"]]

    made, group, configuration = asyncio.run(main())
    node = made.template.node
    assert node.metadata.labels["team"] == "shop"
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "100004"
    assert (node.status.capacity["cpu"], node.status.capacity["ephemeral-storage"]) == ("16", "100Gi")
    assert "nvidia.com/gpu" not in node.status.capacity
    tags = [
        ("cluster", "shop"),
        (f"{TEMPLATE}label/team", "shop"),
        (f"{TEMPLATE}resources/ephemeral-storage", "100Gi"),
        ("kubetide.dev/created-from", PATTERN),
    ]
    assert [(one["Key"], one["Value"]) for one in group["Tags"]] == tags
    asked = {key: group[key] for key in group.keys() - {"Tags", "SubnetIdSet", "LaunchConfigurationId"}}
    assert asked == {
        "AutoScalingGroupName": f"{LARGE}-4",
        "DefaultCooldown": 60,
        "DesiredCapacity": 0,
        "InstanceAllocationPolicy": "LAUNCH_CONFIGURATION",
        "MaxSize": 3,
        "MinSize": 0,
        "ProjectId": 0,
        "ServiceSettings": {"ReplaceMonitorUnhealthy": False},
        "SubnetIds": ["subnet-4"],
        "TerminationPolicies": ["NEWEST_INSTANCE"],
        "VpcId": "vpc-1",
    }
    assert configuration == {
        "CamRoleName": "nodes",
        "ImageId": "img-1",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "InstanceType": "S5.4XLARGE32",
        "LaunchConfigurationName": f"{LARGE}-4",
        "LoginSettings": {"KeyIds": ["skey-1"]},
        "ProjectId": 0,
        "SecurityGroupIds": ["sg-1"],
        "SystemDisk": {"DiskType": "CLOUD_BSSD", "DiskSize": 100},
        "Tags": [
            {
                "Key": "kubetide.dev/created-from",
                "Value": PATTERN,
                "ResourceType": "launch-configuration",
            }
        ],
        "UserData": "am9pbg==",
    }


def test_a_later_process_finds_what_an_earlier_one_created():
    """Groups are found by their tag, page by page, and are still this program's to delete, configuration and all."""

    async def main():
        async with world() as (tencent, _, connect):
            earlier = connect()
            first, second, *_ = await earlier.group_candidates()
            made = [await earlier.create_group(one.new) for one in (first, second)]
            later = connect()
            seen = await later.refresh()
            assert [one.id for one in seen] == [PATTERN, *(one.id for one in made)]
            for one in made:
                await later.delete_group(one.id)
            assert [one.id for one in await later.refresh()] == [PATTERN]
            assert tencent.fleet.groups.keys() == {PATTERN, "asg-plain"}
            assert tencent.configurations.keys() == {"asc-workers"}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("login", "asked"),
    [
        ({"KeyIds": ["skey-1"], "Password": "", "KeepImageLogin": False}, {"KeyIds": ["skey-1"]}),
        ({"KeyIds": [], "KeepImageLogin": True}, {"KeepImageLogin": True}),
        ({"KeyIds": [], "KeepImageLogin": False}, None),
        (None, None),
    ],
)
def test_people_sign_in_as_to_the_patterns_machines(login, asked):
    """Key pairs and the image's own settings are copied, each without the other, which Tencent refuses together."""

    async def main():
        async with world(configuration={"LoginSettings": login}) as (tencent, _, connect):
            cloud = connect()
            await cloud.create_group((await cloud.group_candidates())[0].new)
            [asg] = tencent.groups.keys() - {PATTERN}
            return tencent.configurations[tencent.groups[asg]["LaunchConfigurationId"]]

    assert asyncio.run(main()).get("LoginSettings") == asked


def test_a_group_that_a_person_names_is_no_longer_ours_to_delete():
    """With ``--nodes`` somebody has taken over a group that was created: it stays, however empty."""

    async def main():
        async with world() as (tencent, _, connect):
            cloud = connect()
            await cloud.create_group((await cloud.group_candidates())[0].new)
            [asg] = tencent.groups.keys() - {PATTERN}
            later = connect(NodeSpec(asg, 0, 3))
            [group] = [one for one in await later.refresh() if one.id == asg]
            assert not group.autoprovisioned
            with pytest.raises(CloudError, match="--nodes names it"):
                await later.delete_group(asg)
            assert asg in tencent.fleet.groups

    asyncio.run(main())


def test_orders_that_cannot_be_had_are_shown_and_withdrawn():
    """A stock-out of a created group is reported on placeholders, which have its name and can be deleted."""

    async def main():
        async with world() as (tencent, clock, connect):
            cloud = connect()
            made = await cloud.create_group((await cloud.group_candidates())[0].new)
            [asg] = tencent.groups.keys() - {PATTERN}
            tencent.fleet.sold_out.add(asg)
            await cloud.increase_size(made.id, 1)
            await clock.sleep(minutes(1))
            group = next(one for one in await cloud.refresh() if one.id == made.id)
            [instance] = group.instances
            assert instance.error.cause == "OutOfCapacity"
            await cloud.delete_nodes(made.id, [instance.provider_id])
            assert tencent.fleet.groups[asg].target == 0

    asyncio.run(main())


def test_a_group_that_is_listed_late_is_there_at_once():
    """A group that was just created is known and grows, also while the cloud's list does not have it yet."""

    async def main():
        async with world() as (tencent, clock, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            tencent.knows_tags = False
            made = await cloud.create_group(new)
            assert made.id == new.id
            await cloud.increase_size(made.id, 1)
            await clock.sleep(minutes(2))
            [group] = [one for one in await cloud.refresh() if one.id == made.id]
            assert (group.target_size, len(group.instances), group.stale) == (1, 1, "")

    asyncio.run(main())


def test_what_is_refused():
    """Names that are taken, machines that came since, and refusals are errors; no configuration is left behind."""

    async def main():
        async with world() as (tencent, _, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            tencent.groups["asg-plain"] = {"AutoScalingGroupName": new.id}
            with pytest.raises(CloudError, match="there is an Auto Scaling group of this name already"):
                await cloud.create_group(new)
            del tencent.groups["asg-plain"]
            tencent.errors = [("CreateAutoScalingGroup", "UnauthorizedOperation")]
            with pytest.raises(CloudError) as caught:
                await cloud.create_group(new)
            assert caught.value.cause == "Permission"
            assert tencent.configurations.keys() == {"asc-workers"}
            tencent.configurations["asc-old"] = {
                "LaunchConfigurationName": new.id,
                "InstanceType": "S5.LARGE8",
            }
            with pytest.raises(CloudError, match="LaunchConfigurationNameDuplicated"):
                await cloud.create_group(new)
            tencent.configurations["asc-old"]["Tags"] = [tag("kubetide.dev/created-from", PATTERN)]
            made = await cloud.create_group(new)
            assert "asc-old" not in tencent.configurations
            [asg] = tencent.groups.keys() - {PATTERN}
            tencent.fleet.grow(asg, 1)
            await cloud.refresh()
            with pytest.raises(CloudError, match="it has machines"):
                await cloud.delete_group(made.id)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"group": {"AutoScalingGroupName": "tke-np-abc"}}, "TKE manages it"),
        ({"configuration": {"LaunchConfigurationName": "tke-np-abc"}}, "TKE manages it"),
        ({"group": {"SubnetIdSet": []}}, "no subnets"),
        ({"group": {"HostNameIndexSettings": {"Enabled": True}}}, "numbers the host names"),
        ({"configuration": {"UserData": None}}, "no user data"),
        ({"configuration": {"InstanceChargeType": "PREPAID"}}, "paid by the month"),
        ({"configuration": {"InstanceChargeType": "SPOTPAID"}}, "maximum price"),
        ({"configuration": {"HpcClusterId": "hpc-1"}}, "computing cluster"),
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
            assert warning.startswith("tag kubetide.dev/create: no group can be created like this one: ")
            assert words in warning

    asyncio.run(main())


def test_useless_types_are_named_and_seldom_requested():
    """A type that does not exist or has GPUs is a warning; the others work, and nothing more is requested while idle."""

    async def main():
        async with world(types="S5.4XLARGE32 S9.HUGE GN7.2XLARGE32", page=100) as (tencent, clock, connect):
            cloud = connect()
            assert [one.new.id for one in await cloud.group_candidates()] == [f"{LARGE}-3", f"{LARGE}-4"]
            [group] = await cloud.refresh()
            assert group.warnings == (
                "tag kubetide.dev/create: instance type S9.HUGE is not known; correct it",
                "tag kubetide.dev/create: instance type GN7.2XLARGE32 is left out: it has GPUs, which a template does not show",
            )
            tencent.calls.clear()
            await clock.sleep(minutes(1))
            await cloud.refresh()
            await cloud.group_candidates()
            assert tencent.calls == [
                "DescribeAutoScalingGroups",
                "DescribeAutoScalingGroups",
                "DescribeAutoScalingInstances",
            ]

    asyncio.run(main())


def test_requests_fit_the_vendors_models():
    """The bodies that create a group are parts of the vendor's own models, all the way down."""
    reason = "the SDK serves as an oracle only"
    models = pytest.importorskip("tencentcloud.autoscaling.v20180419.models", reason=reason)

    async def main():
        async with world() as (tencent, _, connect):
            cloud = connect()
            made = await cloud.create_group((await cloud.group_candidates())[0].new)
            await cloud.delete_group(made.id)
            asked = [(action, body) for service, action, body in tencent.bodies if service == "as"]
            assert {"CreateLaunchConfiguration", "CreateAutoScalingGroup"} <= {action for action, _ in asked}
            for action, body in asked:
                # The model warns of each part that it does not have, and a warning is an error.
                getattr(models, f"{action}Request")()._deserialize(body)

    asyncio.run(main())


@pytest.mark.slow
def test_the_loop_creates_a_group_and_deletes_it_again():
    """Pods that no group's machines can hold get a group of their own; it goes when it has been empty for a while."""

    def connect(fleet, clock):
        tencent = FakeTencent(fleet, clock, 100)
        make_pattern(tencent, "S5.4XLARGE32")
        rest = Rest(Direct(tencent), clock, refusal)
        api = TencentApi(rest, clock, keys, REGION, endpoint=lambda service: f"http://{service.host}/")
        return TencentCloud(api, (NodeSpec(PATTERN, 0, 9),), REGION, clock)

    def node_id(_group, machine):
        return f"qcloud:///100003/ins-{machine}"

    def world_of(clock, groups, **settings):
        return FleetWorld(clock, groups, connect=connect, node_id=node_id, **settings)

    create_fill_empty_and_delete(PATTERN, world_of, begins="asg-made-")
