"""The AWS provider against a server that speaks AWS's protocol."""

from __future__ import annotations

import asyncio
import itertools

import pytest

pytest.importorskip("moto", reason="moto is a development dependency")

from tests.clouds.aws.moto_aws import CREDENTIALS, REGION, SlowAws, make_group
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.aws.api import SERVICES, AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.discovery import parse_discovery
from kubetide.clouds.aws.prices import SpotPrices
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.ports.errors import KubetideError
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow
NUMBERS = itertools.count()


@pytest.fixture
def world(server):
    """Two groups of their own on the server, and the provider over it."""
    number = next(NUMBERS)
    clock = Clock()
    aws = SlowAws(server.client, clock, boot_s=5)
    names = f"a-{number}", f"b-{number}"
    tags = [("cluster", f"c-{number}"), ("k8s.io/cluster-autoscaler/node-template/label/team", "shop")]
    make_group(server, names[0], tags=tags)
    make_group(server, names[1], size=1, tags=tags)
    api = AwsApi(aws)
    groups = [NodeSpec(names[0], 0, 3), NodeSpec(names[1], 1, 2)]
    types = InstanceTypes(None)
    return aws, clock, api, names, AwsCloud(api, clock, groups=groups, types=types)


@pytest.mark.parametrize("boot_s", [5, 90], ids=["quick", "slow"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_aws_passes_the_battery(case, boot_s, world):
    """Auto Scaling groups do what the Cloud port promises, also when machines take a minute and a half."""
    aws, clock, _, names, cloud = world

    async def main():
        aws.boot_s = boot_s
        await case(CloudUnderTest(cloud, clock, group=names[0], kept=names[1], patience=minutes(10)))

    asyncio.run(main())


class Faults:
    """Makes the server's answers fail."""

    CODES = {"Throttled": "Throttling", "Permission": "AccessDenied"}  # noqa: RUF012  # read only

    def __init__(self, aws):
        self.aws = aws

    async def run_out(self, group):
        self.aws.stock_out.add(group)

    async def refuse(self, cause):
        self.aws.refuse = dict.fromkeys(SERVICES, self.CODES[cause])

    async def heal(self):
        self.aws.refuse = {}


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
def test_aws_passes_the_battery_of_faults(case, world):
    """Auto Scaling groups do so while machines are slow or cannot be had, and calls are refused."""
    aws, clock, _, names, cloud = world

    async def main():
        aws.boot_s = 120
        await case(
            FailingCloud(
                cloud, clock, group=names[0], kept=names[1], patience=minutes(15), faults=Faults(aws)
            )
        )

    asyncio.run(main())


def test_tags_types_and_discovery(server, world):
    """Discovered groups have the labels of their tags, and a mixed group the least of its types and its shares."""
    _, clock, api, names, _ = world
    number = names[0].removeprefix("a-")
    make_group(server, f"m-{number}", tags=[("cluster", f"c-{number}")], types=("m5.xlarge", "m5.large"))
    flag = parse_discovery(f"asg:tag=cluster=c-{number}")
    cloud = AwsCloud(api, clock, discovery=flag, types=InstanceTypes(api))
    groups = {group.id: group for group in asyncio.run(_refresh(cloud))}
    assert sorted(groups) == sorted([*names, f"m-{number}"])
    assert groups[names[0]].template.node.metadata.labels["team"] == "shop"
    assert groups[names[0]].max_size == 3
    mixed = groups[f"m-{number}"]
    assert mixed.template.node.status.capacity["cpu"] == "2"
    assert {(way.instance_type, way.market) for way in mixed.offerings} == {
        ("m5.xlarge", "on-demand"),
        ("m5.large", "on-demand"),
        ("m5.xlarge", "spot"),
        ("m5.large", "spot"),
    }


def test_spot_prices_are_read_while_a_group_uses_spot_machines(server, world):
    """Prices are by type and zone, read every ten minutes; a role that may not ask knows none, and the group works."""
    aws, clock, api, names, _ = world
    number = names[0].removeprefix("a-")
    make_group(server, f"s-{number}", types=("m5.xlarge", "m5.large"))
    prices = SpotPrices(api)
    groups = [NodeSpec(f"s-{number}", 0, 3), NodeSpec(names[0], 0, 3)]
    cloud = AwsCloud(api, clock, groups=groups, types=InstanceTypes(None), prices=prices)

    def spot():
        mixed = next(one for one in asyncio.run(_refresh(cloud)) if one.id.startswith("s-"))
        return {way.instance_type: way.price_per_hour for way in mixed.offerings if way.market == "spot"}

    aws.refuse = {"DescribeSpotPriceHistory": "AccessDenied"}
    assert spot() == {"m5.large": None, "m5.xlarge": None}
    aws.refuse = {}
    for _ in range(12):
        asyncio.run(clock.sleep(minutes(1)))
        reported = spot()
    assert reported == {"m5.large": 0.00001, "m5.xlarge": 0.00001}, "what the server answers for every type"
    assert aws.calls.count("DescribeSpotPriceHistory") == 2
    alone = AwsCloud(api, clock, groups=groups[1:], types=InstanceTypes(None), prices=SpotPrices(api))
    asyncio.run(_refresh(alone))
    assert aws.calls.count("DescribeSpotPriceHistory") == 2, "no group uses spot machines"


def test_the_newest_price_counts():
    """The newest of several prices for a type in a zone counts; one that is no number is left out."""

    async def answer(operation, parameters):
        assert (operation, parameters["InstanceTypes"]) == ("DescribeSpotPriceHistory", ["m5.large"])
        rows = [
            ("a", "0.04", "12:00"),
            ("a", "0.05", "13:00"),
            ("a", "0.06", "11:00"),
            ("b", "cheap", "13:00"),
        ]
        return {
            "SpotPriceHistory": [
                {"InstanceType": "m5.large", "AvailabilityZone": zone, "SpotPrice": price, "Timestamp": time}
                for zone, price, time in rows
            ]
        }

    prices = SpotPrices(AwsApi(answer))
    asyncio.run(prices.refresh(Clock().now(), {"m5.large"}))
    assert prices.by_place == {("m5.large", "a"): 0.05}


def test_a_stock_out_is_reported_on_placeholders(world):
    """Machines that cannot be had are placeholders with the cause, and can be withdrawn."""
    aws, clock, _, names, cloud = world

    async def main():
        await cloud.refresh()
        aws.stock_out.add(names[0])
        await cloud.increase_size(names[0], 2)
        await clock.sleep(minutes(2))
        await cloud.refresh()
        await clock.sleep(minutes(2))
        group = next(one for one in await cloud.refresh() if one.id == names[0])
        assert [one.state for one in group.instances] == ["Creating", "Creating"]
        assert {(one.error.error_code, one.error.cause) for one in group.instances} == {
            ("InsufficientInstanceCapacity", "OutOfCapacity")
        }
        await cloud.delete_nodes(names[0], [group.instances[0].provider_id])
        group = next(one for one in await cloud.refresh() if one.id == names[0])
        assert (group.target_size, len(group.instances)) == (1, 1)

    asyncio.run(main())


async def _refresh(cloud):
    return await cloud.refresh()


def test_from_flags_to_groups(server, tmp_path, monkeypatch):
    """--cloud-provider=aws with upstream's file, flags and environment finds the groups and their types."""
    number = next(NUMBERS)
    make_group(server, f"f-{number}", size=1, types=("m5.xlarge",))
    sections = [
        f'[ServiceOverride "{at}"]\nService={name}\nRegion={REGION}\nURL={server.url}\nSigningRegion={REGION}\n'
        for at, name in enumerate(("autoscaling", "ec2", "eks"))
    ]
    (tmp_path / "aws.ini").write_text("".join(sections), encoding="utf-8")
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    flags = CloudFlags(cloud_config=str(tmp_path / "aws.ini"), nodes=(f"0:5:f-{number}",))
    context = CloudContext(flags, Clock(), {"AWS_REGION": REGION})

    async def main():
        async with cloud_factory("aws")(context) as cloud:
            [group] = await cloud.refresh()
            assert (group.id, group.max_size, group.target_size) == (f"f-{number}", 5, 1)
            assert group.template.node.status.capacity["cpu"] == "4"
            assert "EC2 API" in group.template.source
            assert group.price_per_hour == 0.192

    asyncio.run(main())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (CloudFlags(), "no node groups; give --nodes"),
        (CloudFlags(nodes=("5:1:x",)), "--nodes: invalid node group spec"),
        (
            CloudFlags(nodes=("0:1:x",), cloud_config="/nowhere"),
            r"--cloud-config=/nowhere: cannot be read \(No such file or directory\)",
        ),
        (CloudFlags(node_group_auto_discovery=("mig:x",)), "unsupported discoverer"),
    ],
)
def test_flags_that_cannot_be_used(flags, words):
    """Each flag that cannot be used is named before anything is asked."""

    async def main():
        async with cloud_factory("aws")(CloudContext(flags, Clock(), {})):
            pytest.fail("it was opened")

    with pytest.raises(KubetideError, match=words):
        asyncio.run(main())


def test_what_aws_scales_itself_is_found(server, world):
    """A tracking policy and a scheduled action of one group; the other one, and groups of others, have none."""
    aws, _, _, names, cloud = world
    tracking = {
        "PredefinedMetricSpecification": {"PredefinedMetricType": "ASGAverageCPUUtilization"},
        "TargetValue": 50.0,
    }
    server.asg.put_scaling_policy(
        AutoScalingGroupName=names[0],
        PolicyName="cpu-50",
        PolicyType="TargetTrackingScaling",
        TargetTrackingConfiguration=tracking,
    )
    server.asg.put_scheduled_update_group_action(
        AutoScalingGroupName=names[0], ScheduledActionName="night", Recurrence="0 20 * * *", DesiredCapacity=0
    )

    async def main():
        await cloud.refresh()
        found = await cloud.scaling_policies()
        aws.refuse = {"DescribePolicies": "AccessDenied"}
        with pytest.raises(KubetideError, match="allow autoscaling:DescribePolicies"):
            await cloud.scaling_policies()
        return found

    assert asyncio.run(main()) == {
        names[0]: ("scaling policy cpu-50 (TargetTrackingScaling)", "scheduled action night (0 20 * * *)")
    }
