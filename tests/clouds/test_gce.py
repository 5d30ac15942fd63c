"""The GCE provider against a server that speaks Compute Engine's protocol."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.gce import PROJECT, ROOT, ZONE, FakeGce, Faults
from tests.clouds.fakes.server import served

from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.clouds.gce.api import ComputeApi, refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.settings import GceSettings, parse_discoveries, parse_nodes
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow


def url(name):
    return f"{ROOT}/projects/{PROJECT}/zones/{ZONE}/instanceGroups/{name}"


NODES = (f"0:3:{url('web')}", f"1:2:{url('system')}")


@asynccontextmanager
async def world(*, boot_s=5, nodes=NODES, discovery=(), page=1, bulk=False):
    """Two groups on a server, and the provider over it."""
    clock = Clock()
    fleet = Fleet(clock, boot_s=boot_s)
    fleet.add("web")
    fleet.add("system", running=1)
    gce = FakeGce(fleet, page)

    async def token():
        return "a-token"

    async with served(gce) as address, HttpSender() as send:
        rest = Rest(send, clock, refusal)
        api = ComputeApi(rest, clock, token, PROJECT, root=f"{address}/compute/v1")
        settings = GceSettings(
            project=PROJECT,
            location=ZONE,
            nodes=parse_nodes(tuple(nodes)),
            discovery=parse_discoveries(tuple(discovery)),
            bulk_listing=bulk,
        )
        yield gce, clock, GceCloud(api, settings, clock, seed=7)


@pytest.mark.parametrize("bulk", [False, True], ids=["by group", "in bulk"])
@pytest.mark.parametrize("boot_s", [5, 90], ids=["quick", "slow"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_gce_passes_the_battery(case, boot_s, bulk):
    """Managed instance groups do what the Cloud port promises, also when machines take a minute and a half."""

    async def main():
        async with world(boot_s=boot_s, bulk=bulk) as (_, clock, cloud):
            await case(
                CloudUnderTest(cloud, clock, group=url("web"), kept=url("system"), patience=minutes(10))
            )

    asyncio.run(main())


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
def test_gce_passes_the_battery_of_faults(case):
    """Stock-outs are on the machines, refusals say their cause, and nothing is lost or ordered twice."""

    async def main():
        async with world() as (gce, clock, cloud):
            test = FailingCloud(
                cloud, clock, group=url("web"), kept=url("system"), patience=minutes(15), faults=Faults(gce)
            )
            await case(test)

    asyncio.run(main())


def test_throttled_reads_are_repeated_after_a_pause():
    """A list that is refused for its rate is requested again after a pause."""

    async def main():
        async with world() as (gce, clock, cloud):
            await cloud.refresh()
            gce.errors = [(429, "rateLimitExceeded"), (503, "backendError")]
            before = clock.now()
            assert len(await cloud.refresh()) == 2
            assert clock.now() > before
            assert not gce.errors

    asyncio.run(main())


def test_what_cannot_be_read_is_shown_as_it_was():
    """Without rights to list, groups stay as they were and say why."""

    async def main():
        async with world() as (gce, _, cloud):
            before = await cloud.refresh()
            gce.errors = [(403, "forbidden")] * 9
            after = await cloud.refresh()
            assert [one.target_size for one in after] == [one.target_size for one in before]
            assert all("403" in one.stale for one in after)

    asyncio.run(main())


def test_a_failed_operation_fails_the_increase_with_its_cause():
    """An operation that ends in an error of quota is an increase refused for quota, ordered once."""

    async def main():
        async with world() as (gce, _, cloud):
            gce.failed_operation = {"errors": [{"code": "QUOTA_EXCEEDED", "message": "CPUS"}]}
            with pytest.raises(CloudError, match="QUOTA_EXCEEDED") as found:
                await cloud.increase_size(url("web"), 2)
            assert (found.value.cause, found.value.error_class) == ("Quota", "OutOfResource")
            assert gce.calls.count("POST createInstances") == 1

    asyncio.run(main())


def test_a_stock_out_is_on_the_instance():
    """Instances that cannot be made say so, with class, code and cause."""

    async def main():
        async with world(boot_s=600) as (gce, clock, cloud):
            gce.attempts["web"] = [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "none left"}]
            await cloud.increase_size(url("web"), 1)
            await clock.sleep(minutes(1))
            group = next(one for one in await cloud.refresh() if one.id == url("web"))
            (error,) = (one.error for one in group.instances)
            assert (error.error_class, error.error_code) == ("OutOfResource", "RESOURCE_POOL_EXHAUSTED")
            assert (error.cause, error.error_message) == ("OutOfCapacity", "none left")

    asyncio.run(main())


def test_discovery_pages_templates_and_prices():
    """Groups are found page by page; their template has labels, reserved resources and a price."""

    async def main():
        async with world(nodes=(), discovery=("mig:namePrefix=s,min=0,max=4",)) as (_, _, cloud):
            (group,) = await cloud.refresh()
            assert (group.id, group.max_size, group.target_size) == (url("system"), 4, 1)
            node = group.template.node
            assert node.metadata.labels["team"] == "shop"
            assert node.status.allocatable["cpu"] == "3940m"
            assert [one.metadata.name for one in group.template.pods] == ["kube-proxy-system"]
            (offering,) = group.offerings
            assert (offering.instance_type, offering.zone, offering.market) == (
                "e2-standard-4",
                ZONE,
                "on-demand",
            )
            assert (
                offering.price_per_hour
                == pytest.approx(group.price_per_hour)
                == pytest.approx(0.148, abs=0.02)
            )

    asyncio.run(main())


def test_calls_at_rest():
    """A refresh costs the pages of one list of managers and one list of instances a group, and nothing a node."""

    async def main():
        async with world(page=500) as (gce, clock, cloud):
            await cloud.refresh()
            await clock.sleep(minutes(1))
            gce.calls.clear()
            await cloud.refresh()
            assert sorted(gce.calls) == ["GET instanceGroupManagers", *["POST listManagedInstances"] * 2]

    asyncio.run(main())
