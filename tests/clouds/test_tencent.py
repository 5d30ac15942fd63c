"""The Tencent provider against a server that speaks the protocol of Tencent Cloud's API 3.0."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import served
from tests.clouds.fakes.tencent import KEYS, REGION, FakeTencent, Faults

from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.clouds.tencent.api import TencentApi, refusal
from kubetide.clouds.tencent.cloud import TencentCloud
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow
NODES = (NodeSpec("asg-web", 0, 3), NodeSpec("asg-system", 1, 2))


@asynccontextmanager
async def world(*, boot_s=5, nodes=NODES, page=1):
    """Two groups on a server, and the provider over it."""
    clock = Clock()
    fleet = Fleet(clock, boot_s=boot_s)
    fleet.add("asg-web")
    fleet.add("asg-system", running=1)
    tencent = FakeTencent(fleet, clock, page)

    async def keys():
        return KEYS

    async with served(tencent) as address, HttpSender() as send:
        rest = Rest(send, clock, refusal)
        api = TencentApi(rest, clock, keys, REGION, endpoint=lambda _service: f"{address}/")
        yield tencent, clock, TencentCloud(api, nodes, REGION, clock)


@pytest.mark.parametrize("boot_s", [5, 90], ids=["quick", "slow"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_tencent_passes_the_battery(case, boot_s):
    """Auto Scaling groups do what the Cloud port promises, also when machines take a minute and a half."""

    async def main():
        async with world(boot_s=boot_s) as (_, clock, cloud):
            test = CloudUnderTest(cloud, clock, group="asg-web", kept="asg-system", patience=minutes(10))
            await case(test)

    asyncio.run(main())


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
def test_tencent_passes_the_battery_of_faults(case):
    """Stock-outs are on the machines, refusals say their cause, and nothing is lost or ordered twice."""

    async def main():
        async with world() as (tencent, clock, cloud):
            test = FailingCloud(
                cloud, clock, group="asg-web", kept="asg-system", patience=minutes(15), faults=Faults(tencent)
            )
            await case(test)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("ResourceInsufficient.AutoscalingGroupAboveMaxCapacity", "OutOfCapacity"),
        ("ResourcesSoldOut.SpecifiedInstanceType", "OutOfCapacity"),
        ("LimitExceeded.QuotaNotEnough", "Quota"),
        ("AuthFailure.UnauthorizedOperation", "Permission"),
        ("RequestLimitExceeded", "Throttled"),
    ],
)
def test_a_refused_increase_says_its_cause(code, cause):
    """The error of an increase has the cloud's code and what it means; the order is sent once."""

    async def main():
        async with world() as (tencent, _, cloud):
            tencent.errors = [("ModifyAutoScalingGroup", code)]
            with pytest.raises(CloudError, match=code) as found:
                await cloud.increase_size("asg-web", 1)
            assert (found.value.error_code, found.value.cause) == (code, cause)
            assert tencent.calls.count("ModifyAutoScalingGroup") == 1

    asyncio.run(main())


def test_throttled_reads_are_repeated_after_a_pause():
    """A list that is refused for its rate is requested again after a pause."""

    async def main():
        async with world() as (tencent, clock, cloud):
            await cloud.refresh()
            tencent.errors = [("DescribeAutoScalingInstances", "RequestLimitExceeded")]
            before = clock.now()
            assert not any(one.stale for one in await cloud.refresh())
            assert clock.now() > before

    asyncio.run(main())


def test_one_deleted_group_does_not_hide_the_others():
    """A group that vanished stays as it was and says why."""

    async def main():
        async with world() as (tencent, _, cloud):
            await cloud.refresh()
            tencent.fleet.groups["asg-other"] = tencent.fleet.groups.pop("asg-system")
            tencent.errors = [("DescribeAutoScalingInstances", "ResourceNotFound.AutoScalingGroupNotFound")]
            system, web = await cloud.refresh()
            assert "asg-system" in system.stale
            assert (web.id, web.stale) == ("asg-web", "")

    asyncio.run(main())


def test_templates_and_calls_at_rest():
    """A template has the tags' labels and the zone's number; a refresh costs one list of groups and one a group."""

    async def main():
        async with world(page=100) as (tencent, clock, cloud):
            group = (await cloud.refresh())[0]
            labels = group.template.node.metadata.labels
            assert (labels["team"], labels["topology.kubernetes.io/zone"]) == ("shop", "100003")
            assert [(one.instance_type, one.market) for one in group.offerings] == [("S5.LARGE8", "spot")]
            await clock.sleep(minutes(1))
            tencent.calls.clear()
            await cloud.refresh()
            assert tencent.calls == ["DescribeAutoScalingGroups", *["DescribeAutoScalingInstances"] * 2]

    asyncio.run(main())


def test_groups_that_do_not_exist_end_the_start():
    """When none of the named groups exists, the start fails and names them."""

    async def main():
        async with world(nodes=(NodeSpec("asg-none", 0, 3),)) as (_, _, cloud):
            with pytest.raises(CloudError, match="asg-none"):
                await cloud.refresh()

    asyncio.run(main())


def test_requests_fit_the_vendors_models():
    """Every parameter of every request is one that the vendor's own model of the action has."""
    reason = "the SDK serves as an oracle only"
    scaling = pytest.importorskip("tencentcloud.autoscaling.v20180419.models", reason=reason)

    async def main():
        async with world(page=100) as (tencent, clock, cloud):
            tencent.fleet.sold_out.add("asg-web")
            await cloud.increase_size("asg-web", 1)
            await clock.sleep(minutes(1))
            system, _ = await cloud.refresh()
            await cloud.increase_size("asg-system", 1)
            await clock.sleep(minutes(1))
            await cloud.refresh()
            await cloud.delete_nodes("asg-system", [system.instances[0].provider_id])
            asked = {action for service, action, _ in tencent.bodies if service == "as"}
            assert {"DescribeAutoScalingActivities", "RemoveInstances", "ModifyAutoScalingGroup"} <= asked
            for service, action, body in tencent.bodies:
                model = getattr(scaling, f"{action}Request")() if service == "as" else None
                assert model is None or all(hasattr(model, name) for name in body), (action, body)

    asyncio.run(main())
