"""The Azure provider against a server that speaks Resource Manager's protocol."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.clouds.fakes.azure import GROUP, SUBSCRIPTION, FakeAzure, Faults
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import served

from kubetide.clouds.azure.api import ComputeApi, Subscription, refusal
from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.clouds.azure.discovery import parse_discovery
from kubetide.clouds.azure.settings import AzureSettings
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.ports.errors import CloudError
from kubetide.testing import cloud_battery
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow
# A set's capacity counts machines that exist, if only as being created: nothing can be withdrawn.
WITHOUT_OPEN_ORDERS = {
    cloud_battery.a_decrease_never_removes_what_exists,
    cloud_battery.a_decrease_withdraws_an_open_order,
}
NODES = (NodeSpec("web", 0, 3), NodeSpec("system", 1, 2))


@asynccontextmanager
async def world(*, boot_s=5, nodes=NODES, page=1, flexible=False, spot=False, **settings):
    """Two sets on a server, and the provider over it."""
    clock = Clock()
    fleet = Fleet(clock, boot_s=boot_s, shown_s=0)
    fleet.add("web")
    fleet.add("system", running=1)
    azure = FakeAzure(fleet, page=page, flexible=flexible, spot=spot)

    async def token():
        return "a-token"

    async with served(azure) as address, HttpSender() as send:
        rest = Rest(send, clock, refusal)
        api = ComputeApi(rest, clock, token, Subscription(SUBSCRIPTION, GROUP, address))
        settings = AzureSettings(nodes=nodes, flexible=flexible, **settings)
        yield azure, clock, AzureCloud(api, settings, clock)


@pytest.mark.parametrize("flexible", [False, True], ids=["uniform", "flexible"])
@pytest.mark.parametrize("boot_s", [5, 90], ids=["quick", "slow"])
@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in WITHOUT_OPEN_ORDERS], ids=lambda case: case.__name__
)
def test_azure_passes_the_battery(case, boot_s, flexible):
    """Scale sets do what the Cloud port promises, except for open orders, which they do not have."""

    async def main():
        async with world(boot_s=boot_s, flexible=flexible) as (_, clock, cloud):
            await case(CloudUnderTest(cloud, clock, group="web", kept="system", patience=minutes(15)))

    asyncio.run(main())


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
def test_azure_passes_the_battery_of_faults(case):
    """Stock-outs are on the machines, refusals say their cause, and nothing is lost or ordered twice."""

    async def main():
        async with world(fast_delete=True) as (azure, clock, cloud):
            test = FailingCloud(
                cloud, clock, group="web", kept="system", patience=minutes(15), faults=Faults(azure)
            )
            await case(test)

    asyncio.run(main())


def test_a_decrease_changes_nothing():
    """Machines that exist stay, and their number stays the target."""

    async def main():
        async with world() as (azure, _, cloud):
            await cloud.increase_size("web", 2)
            await cloud.decrease_target_size("web", 1)
            group = next(one for one in await cloud.refresh() if one.id == "web")
            assert (group.target_size, len(group.instances)) == (2, 2)
            assert azure.calls.count("PUT web") == 1

    asyncio.run(main())


def test_throttled_lists_of_machines_wait_as_reported():
    """Machines whose list is refused stay as they were, and no list is requested before the time that the cloud says."""

    async def main():
        async with world() as (azure, clock, cloud):
            await cloud.refresh()
            await cloud.increase_size("web", 1)
            azure.errors = [(429, "TooManyRequests", {"Retry-After": "600"})]
            azure.calls.clear()
            for _ in range(2):
                group = next(one for one in await cloud.refresh() if one.id == "web")
                assert (group.target_size, group.instances, group.stale) == (1, (), "")
            assert azure.calls == ["GET virtualMachines"]
            await clock.sleep(minutes(11))
            group = next(one for one in await cloud.refresh() if one.id == "web")
            assert len(group.instances) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("AllocationFailed", "OutOfCapacity"),
        ("QuotaExceeded", "Quota"),
        ("AuthorizationFailed", "Permission"),
        ("TooManyRequests", "Throttled"),
    ],
)
def test_a_refused_increase_says_its_cause(code, cause):
    """The error of an increase has the cloud's code and what it means; the order is sent once."""

    async def main():
        async with world() as (azure, _, cloud):
            await cloud.refresh()
            azure.refused_changes = [(409, code)]
            with pytest.raises(CloudError, match=code) as found:
                await cloud.increase_size("web", 1)
            assert (found.value.error_code, found.value.cause) == (code, cause)
            assert azure.calls.count("PUT web") == 1
            group = next(one for one in await cloud.refresh() if one.id == "web")
            assert group.target_size == 0

    asyncio.run(main())


def test_an_atomic_increase_waits_and_says_why_it_failed():
    """All come or none: the operation's own error is the error of the increase."""

    async def main():
        async with world() as (azure, _, cloud):
            await cloud.refresh()
            azure.operation = ("Failed", {"code": "ZonalAllocationFailed", "message": "none left"})
            with pytest.raises(CloudError, match="ZonalAllocationFailed") as found:
                await cloud.atomic_increase_size("web", 2)
            assert found.value.cause == "OutOfCapacity"
            assert next(one for one in await cloud.refresh() if one.id == "web").target_size == 0
            azure.operation = ("Succeeded", None)
            await cloud.atomic_increase_size("web", 2)
            assert next(one for one in await cloud.refresh() if one.id == "web").target_size == 2

    asyncio.run(main())


def test_a_set_edited_by_hand_is_read_again():
    """With the switch, a size holds only for the set as it was read; once it is read anew."""

    async def main():
        async with world(etag=True) as (azure, _, cloud):
            await cloud.refresh()
            azure.etag += 1
            await cloud.increase_size("web", 1)
            assert azure.calls.count("PUT web") == 2
            assert azure.fleet.groups["web"].target == 1

    asyncio.run(main())


def test_deletion_by_force_falls_back():
    """Where force is not allowed, machines are deleted without it; a pre-empted order is sent once more."""

    async def main():
        async with world(force_delete=True) as (azure, _, cloud):
            await cloud.increase_size("web", 3)
            group = next(one for one in await cloud.refresh() if one.id == "web")
            ids = [one.provider_id for one in group.instances]
            azure.refused_changes = [(409, "OperationNotAllowed")]
            await cloud.delete_nodes("web", ids[:1])
            azure.refused_changes = [(409, "OperationPreempted")]
            await cloud.delete_nodes("web", ids[1:2])
            assert azure.calls.count("POST delete") == 4
            assert azure.fleet.groups["web"].target == 1

    asyncio.run(main())


def test_a_machine_that_failed_is_an_instance_with_an_error():
    """With the switch, a failed machine that does not run counts as never made."""

    async def main():
        async with world(fast_delete=True) as (azure, _, cloud):
            await cloud.increase_size("web", 1)
            azure.failed = {one.name for one in azure.fleet.groups["web"].machines}
            group = next(one for one in await cloud.refresh() if one.id == "web")
            (instance,) = group.instances
            assert (instance.state, instance.error.error_code) == ("Creating", "provisioning-state-failed")

    asyncio.run(main())


def test_discovery_templates_and_offerings():
    """Sets are found by their tags, page by page, with labels, disks, zones and a price."""

    async def main():
        discovery = (parse_discovery("label:cluster=shop"),)
        async with world(nodes=(), discovery=discovery) as (_, _, cloud):
            groups = await cloud.refresh()
            assert [(one.id, one.min_size, one.max_size) for one in groups] == [
                ("system", 0, 4),
                ("web", 0, 4),
            ]
            labels = groups[0].template.node.metadata.labels
            assert (labels["team"], labels["agentpool"], labels["storagetier"]) == (
                "shop",
                "np1",
                "Premium_LRS",
            )
            assert [(one.zone, one.share) for one in groups[0].offerings] == [
                ("westeurope-1", 0.5),
                ("westeurope-2", 0.5),
            ]
            assert groups[0].price_per_hour == pytest.approx(0.192)

    asyncio.run(main())


def test_calls_at_rest():
    """A minute without changes costs one list of sets, and one read of each spot set."""

    async def main():
        for spot, expected in ((False, []), (True, ["GET system", "GET web"])):
            async with world(page=500, spot=spot) as (azure, clock, cloud):
                await cloud.refresh()
                await clock.sleep(minutes(1))
                azure.calls.clear()
                await cloud.refresh()
                await cloud.refresh()
                assert azure.calls == ["GET virtualMachineScaleSets", *expected]

    asyncio.run(main())


def test_sizes_from_the_api():
    """The list of sizes is read from the API where the configuration says so."""

    async def main():
        async with world() as (_, _, cloud):
            sizes = await cloud._api.skus("westeurope")
            size = sizes["standard_d4s_v3"]
            assert (size.vcpu, size.memory_mib, size.gpu, size.arch) == (4, 16384, 0, "amd64")

    asyncio.run(main())
