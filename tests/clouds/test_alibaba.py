"""The Alibaba provider against a server that speaks the protocol of Alibaba Cloud."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.clouds.fakes.alibaba import KEYS, REGION, FakeAlibaba, Faults
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import served

from kubetide.clouds.alibaba.api import AlibabaApi, refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow
NODES = (NodeSpec("asg-web", 0, 3), NodeSpec("asg-system", 1, 2))


@asynccontextmanager
async def world(*, boot_s=5, nodes=NODES, desired=True):
    """Two groups on a server, and the provider over it."""
    clock = Clock()
    fleet = Fleet(clock, boot_s=boot_s)
    fleet.add("asg-web")
    fleet.add("asg-system", running=1)
    alibaba = FakeAlibaba(fleet, clock, desired=desired)

    async def keys():
        return KEYS

    async with served(alibaba) as address, HttpSender() as send:
        rest = Rest(send, clock, refusal)
        api = AlibabaApi(rest, clock, keys, REGION, endpoint=lambda _host: f"{address}/")
        yield alibaba, clock, AlibabaCloud(api, nodes, REGION, clock)


@pytest.mark.parametrize("desired", [True, False], ids=["desired capacity", "total capacity"])
@pytest.mark.parametrize("boot_s", [5, 90], ids=["quick", "slow"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_alibaba_passes_the_battery(case, boot_s, desired):
    """Scaling groups do what the Cloud port promises, also when machines take a minute and a half."""

    async def main():
        async with world(boot_s=boot_s, desired=desired) as (_, clock, cloud):
            test = CloudUnderTest(cloud, clock, group="asg-web", kept="asg-system", patience=minutes(10))
            await case(test)

    asyncio.run(main())


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
def test_alibaba_passes_the_battery_of_faults(case):
    """Stock-outs are on the machines, refusals say their cause, and nothing is lost or ordered twice."""

    async def main():
        async with world() as (alibaba, clock, cloud):
            test = FailingCloud(
                cloud, clock, group="asg-web", kept="asg-system", patience=minutes(15), faults=Faults(alibaba)
            )
            await case(test)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("OperationDenied.NoStock", "OutOfCapacity"),
        ("InvalidParameter.NotEnoughStock", "OutOfCapacity"),
        ("QuotaExceed.ElasticQuota", "Quota"),
        ("Forbidden.RAM", "Permission"),
        ("Throttling.User", "Throttled"),
    ],
)
def test_a_refused_increase_says_its_cause(code, cause):
    """The error of an increase has the cloud's code and what it means; the order is sent once."""

    async def main():
        async with world() as (alibaba, _, cloud):
            alibaba.errors = [("ScaleWithAdjustment", code, 400)]
            with pytest.raises(CloudError, match=code) as found:
                await cloud.increase_size("asg-web", 1)
            assert (found.value.error_code, found.value.cause) == (code, cause)
            assert alibaba.calls.count("ScaleWithAdjustment") == 1

    asyncio.run(main())


def test_a_refused_removal_is_named_and_the_others_go():
    """Each machine is removed by itself; the error names those that the cloud refuses to remove."""

    async def main():
        async with world() as (alibaba, clock, cloud):
            await cloud.increase_size("asg-web", 3)
            await clock.sleep(minutes(1))
            group = next(one for one in await cloud.refresh() if one.id == "asg-web")
            alibaba.errors = [("RemoveInstances", "IncorrectScalingGroupStatus", 400)]
            ids = [one.provider_id for one in group.instances]
            with pytest.raises(CloudError, match="1 of 2 instances of asg-web were not removed"):
                await cloud.delete_nodes("asg-web", ids[:2])
            assert alibaba.fleet.groups["asg-web"].target == 2

    asyncio.run(main())


def test_throttled_reads_are_repeated_after_a_pause():
    """A list that is refused for its rate is requested again after a pause."""

    async def main():
        async with world() as (alibaba, clock, cloud):
            await cloud.refresh()
            alibaba.errors = [("DescribeScalingGroups", "Throttling", 400)]
            before = clock.now()
            assert not any(one.stale for one in await cloud.refresh())
            assert clock.now() > before

    asyncio.run(main())


def test_templates_and_calls_at_rest():
    """A template has the configuration's tags as labels; a refresh costs one list of groups and one a group."""

    async def main():
        async with world() as (alibaba, clock, cloud):
            group = (await cloud.refresh())[0]
            node = group.template.node
            assert node.metadata.labels["team"] == "shop"
            assert node.status.capacity["memory"] == str(8 << 30)
            assert [(one.instance_type, one.market) for one in group.offerings] == [("ecs.g6.large", "spot")]
            await clock.sleep(minutes(1))
            alibaba.calls.clear()
            await cloud.refresh()
            assert alibaba.calls == ["DescribeScalingGroups", *["DescribeScalingInstances"] * 2]

    asyncio.run(main())


def test_a_group_that_does_not_exist_ends_the_start():
    """All named groups must exist at the start."""

    async def main():
        async with world(nodes=(*NODES, NodeSpec("asg-none", 0, 3))) as (_, _, cloud):
            with pytest.raises(CloudError, match="asg-none"):
                await cloud.refresh()

    asyncio.run(main())
