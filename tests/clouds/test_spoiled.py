"""Answers of clouds that go wrong, each as it was found: what a provider makes of them."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.clouds.faults import BODIES, Fault
from tests.clouds.vendors import VENDORS, spoiled

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.groups import read_group
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, minutes


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_body_that_cannot_be_read_is_an_error_of_the_cloud(vendor, body):
    """A proxy's page, half an answer and one that is nested too deeply are CloudErrors, also of an order that was taken."""
    here, cloud, faulty = spoiled(vendor)

    async def main():
        await cloud.refresh()
        for first in range(3):
            await here.clock.sleep(minutes(2))
            faulty.set(Fault(body, first=first, times=100))
            try:
                await cloud.increase_size(here.id_of(here.web), 1)
            except CloudError as error:
                assert str(error)  # noqa: PT017  # an order without a body in its answer may be taken
            assert here.fleet.groups[here.web].target <= 3
            faulty.set(None)
            assert {one.stale for one in await cloud.refresh()} == {""}

    asyncio.run(main())


def test_a_group_behind_grpc_that_was_never_read_cannot_grow():
    """Its size counted as 0, below its minimum, and the loop bought nodes that there were; its bounds come with its size."""
    here, cloud, faulty = spoiled("externalgrpc")

    async def main():
        for earlier in (4, 2):
            faulty.set(Fault("status", first=earlier))
            system, web = await cloud.refresh()
            assert (system.min_size, system.max_size, "NodeGroupTargetSize" in system.stale) == (0, 0, True)
            assert (web.stale, web.max_size) == ("", 3)
            for order in (cloud.increase_size(here.system, 1), cloud.delete_nodes(here.system, ["x://m1"])):
                with pytest.raises(CloudError, match="NodeGroupTargetSize: Unavailable"):
                    await order
        faulty.set(None)
        [system, _] = await cloud.refresh()
        assert (system.min_size, system.max_size, system.target_size, system.stale) == (1, 2, 1, "")

    asyncio.run(main())


def test_a_list_without_an_end_is_an_error():
    """A page whose mark for the next one is its own would be asked for for ever; the group stays as it was."""
    for vendor in ("azure", "gce"):
        here, cloud, faulty = spoiled(vendor)
        here.fleet.grow(here.system, 1)

        async def main(here=here, cloud=cloud, faulty=faulty):
            await here.clock.sleep(minutes(1))
            before = await cloud.refresh()
            await here.clock.sleep(minutes(6))
            faulty.set(Fault("again", times=1000))
            try:
                shown = await cloud.refresh()
            except CloudError as error:
                assert "the list has no end" in str(error)  # noqa: PT017  # Azure lists all sets at once
            else:
                assert "the list has no end" in next(one.stale for one in shown if one.stale)
                assert [one.instances for one in shown] == [one.instances for one in before]

        asyncio.run(main())


def test_a_list_of_aws_without_an_end_is_an_error():
    """The error names the call."""

    async def answer(_operation, _parameters):
        return {"InstanceTypes": [], "NextToken": "more"}

    with pytest.raises(CloudError, match="DescribeInstanceTypes: the list has no end"):
        asyncio.run(AwsApi(answer).instance_types())


@pytest.mark.parametrize(
    ("vendor", "action", "path", "text"),
    [
        ("alibaba", "DescribeScalingInstances", "ScalingInstances/ScalingInstance", "ends after 1 of 2"),
        ("tencent", "DescribeAutoScalingInstances", "AutoScalingInstanceSet", "ends after 1 of 2"),
        ("alibaba", "DescribeScalingInstances", "", "does not say how long it is"),
        ("tencent", "DescribeAutoScalingInstances", "", "does not say how long it is"),
    ],
)
def test_a_list_that_may_lack_machines_takes_none_away(vendor, action, path, text):
    """One machine twice, as when a page shifts, hides another; and a list without its length may go on."""
    here, cloud, _ = spoiled(vendor, page=500)
    here.fleet.grow(here.system, 1)

    async def main():
        await here.clock.sleep(minutes(1))
        before = await cloud.refresh()
        own = "InstanceId"
        name = here.fleet.machines(here.system)[0].name
        twice = [{own: f"{'i' if vendor == 'alibaba' else 'ins'}-{name}", "Zone": "ap-guangzhou-3"}] * 2
        answer = {"TotalCount": 2} if path else {}
        place = answer
        *steps, last = (path or "ScalingInstances/ScalingInstance").split("/")
        if vendor == "tencent":
            steps, last = [], "AutoScalingInstanceSet"
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = twice
        here.fake.answers[action] = answer
        shown = await cloud.refresh()
        assert text in shown[0].stale
        assert shown[0].instances == before[0].instances

    asyncio.run(main())


@pytest.mark.parametrize(
    "how", [("azure", {}), ("externalgrpc", {}), ("gce", {}), ("gce", {"bulk": True})], ids=str
)
def test_a_machine_that_is_listed_twice_is_one(how):
    """Pages that shift while they are read name a machine twice; a decrease and a view count it once."""
    _, cloud, faulty = spoiled(how[0], page=500, **how[1])

    async def main():
        faulty.set(Fault("double", times=1000))
        found = [one.provider_id for group in await cloud.refresh() for one in group.instances or ()]
        assert len(found) == len(set(found)) == 1

    asyncio.run(main())


def test_a_network_without_a_zone_is_asked_about_again():
    """One answer that leaves the zone out does not keep a group without a template for as long as the process lives."""
    here, cloud, _ = spoiled("tencent")

    async def main():
        here.fake.answers["DescribeSubnets"] = {"SubnetSet": [{"SubnetId": "subnet-1"}]}
        assert {one.template for one in await cloud.refresh()} == {None}
        del here.fake.answers["DescribeSubnets"]
        assert None not in [one.template for one in await cloud.refresh()]

    asyncio.run(main())


def test_a_machine_whose_url_cannot_be_read_exists():
    """A decrease on Compute Engine, which ends machines where there are no open orders, counts it."""
    here, cloud, faulty = spoiled("gce", page=500)
    here.fleet.grow(here.system, 1)

    async def main():
        await here.clock.sleep(minutes(1))
        await cloud.refresh()
        faulty.spoil("instance", "?")
        with pytest.raises(CloudError, match="existingNodes: 2"):
            await cloud.decrease_target_size(here.id_of(here.system), 1)
        assert len(here.fleet.living(here.system)) == 2

    asyncio.run(main())


def test_a_size_that_compute_engine_does_not_say_is_not_zero():
    """The group stays as it was, and does not grow beyond its maximum."""
    here, cloud, faulty = spoiled("gce", page=500)

    async def main():
        await cloud.refresh()
        faulty.spoil("targetSize", None)
        await here.clock.sleep(minutes(1))
        system, _ = await cloud.refresh()
        assert (system.target_size, "does not say the target size of system" in system.stale) == (1, True)
        with pytest.raises(CloudError, match="does not say the target size"):
            await cloud.increase_size(here.id_of(here.system), 2)
        assert here.fleet.groups[here.system].target == 1

    asyncio.run(main())


def test_a_size_that_aws_does_not_say_is_that_of_the_machines():
    """An increase of 0 by one would end all machines but one."""
    machines = [{"InstanceId": f"i-{number}", "LifecycleState": "InService"} for number in range(3)]
    assert read_group({"AutoScalingGroupName": "web", "Instances": machines}).desired == 3


@pytest.mark.parametrize("value", [None, []], ids=["left out", "of nothing"])
def test_an_answer_of_azure_without_a_list_takes_no_machines_away(value):
    """Neither the sets nor the machines of one are gone when an answer has no list; an empty list is one."""
    here, cloud, faulty = spoiled("azure", page=500)

    async def main():
        before = await cloud.refresh()
        faulty.spoil("value", value)
        await here.clock.sleep(minutes(6))
        if value is None:
            with pytest.raises(CloudError, match="virtualMachineScaleSets: the answer has no list"):
                await cloud.refresh()
            faulty.spoil("", None)
            assert await cloud.refresh() == before
        else:
            assert "could not find vmss: system" in (await cloud.refresh())[0].stale

    asyncio.run(main())


def test_a_set_whose_first_list_is_throttled_is_not_empty():
    """Until the time that Azure names its machines are unknown; no such time is longer than a quarter of an hour."""
    here, cloud, faulty = spoiled("azure", page=500)

    async def main():
        faulty.set(Fault("status", first=1, times=2, status=429, retry_after="99999999"))
        for _ in range(2):
            shown = await cloud.refresh()
            assert all("throttles" in one.stale or "429" in one.stale for one in shown), shown
        await here.clock.sleep(minutes(16))
        system, _ = await cloud.refresh()
        assert (system.stale, len(system.instances)) == ("", 1)

    asyncio.run(main())


@pytest.mark.parametrize("field", ["Zone", "InstanceId"])
def test_a_machine_of_tencent_in_service_exists(field):
    """A decrease counts it though its zone or its id is left out; Tencent Cloud would end it."""
    here, cloud, faulty = spoiled("tencent")
    here.fleet.grow(here.system, 1)

    async def main():
        await here.clock.sleep(minutes(1))
        await cloud.refresh()
        faulty.spoil(field, None)
        with pytest.raises(CloudError, match="existingNodes: 2"):
            await cloud.decrease_target_size(here.system, 1)

    asyncio.run(main())


@pytest.mark.parametrize("bulk", [False, True], ids=["each", "bulk"])
def test_a_decrease_on_compute_engine_needs_the_whole_list(bulk):
    """A list that ends early, as without its last page's token, would let it end machines that it leaves out."""
    here, cloud, faulty = spoiled("gce", page=1, bulk=bulk)
    here.fleet.grow(here.system, 1)

    async def main():
        await here.clock.sleep(minutes(1))
        await cloud.refresh()
        faulty.spoil("nextPageToken", None)
        with pytest.raises(CloudError, match="system ends after 1 of 2"):
            await cloud.decrease_target_size(here.id_of(here.system), 1)
        assert len(here.fleet.living(here.system)) == 2

    asyncio.run(main())


def test_a_machine_of_alibaba_without_its_id_takes_no_other_away():
    """It was shown as a machine without a name, and the real one was out of sight."""
    _, cloud, faulty = spoiled("alibaba")

    async def main():
        before = await cloud.refresh()
        faulty.spoil("InstanceId", None)
        system, _ = await cloud.refresh()
        assert "instances of asg-system has one without InstanceId" in system.stale
        assert system.instances == before[0].instances

    asyncio.run(main())


@pytest.mark.parametrize(
    ("vendor", "field"), [("alibaba", "CpuCoreCount"), ("gce", "guestCpus"), ("tencent", "Memory")]
)
@pytest.mark.parametrize("value", [None, 0], ids=["left out", "nothing"])
def test_an_instance_type_without_cpus_or_memory_gives_no_template(vendor, field, value):
    """No pod fits such a node: the group would never grow, and its template looked as good as any."""
    _, cloud, faulty = spoiled(vendor)
    faulty.spoil(field, value)

    async def main():
        for group in await cloud.refresh():
            assert (group.template, group.stale) == (None, "")
            assert "both should be above 0" in group.template_error

    asyncio.run(main())


@pytest.mark.parametrize("vendor", ["alibaba", "tencent"])
def test_a_maximum_below_that_of_nodes_is_a_warning(vendor):
    """The flag's holds, and the cloud makes no machines beyond its own; of a group that allows more nothing is said."""
    here, cloud, _ = spoiled(vendor)
    here.fake.groups |= {here.web: {"MaxSize": 2}, here.system: {"MaxSize": 9}}

    async def main():
        system, web = await cloud.refresh()
        assert (web.max_size, system.warnings) == (3, None)
        assert [
            "its own maximum size 2 only, which is below the 3 of --nodes" in one for one in web.warnings
        ] == [True]

    asyncio.run(main())


def test_a_null_of_compute_engine_is_as_if_it_were_not_there():
    """As on all other clouds; the group could not be read."""
    here, _, _ = spoiled("gce")
    send = here.send

    async def with_null(request):
        answer = await send(request)
        body = json.loads(answer.body)
        for one in body.get("managedInstances", ()):
            one["instanceStatus"] = one["lastAttempt"] = None
        return answer._replace(body=json.dumps({"kind": None, "nextPageToken": None} | body).encode())

    here.send = with_null

    async def main():
        system, web = await here.connect().refresh()
        assert (system.stale, len(system.instances), web.stale) == ("", 1, "")

    asyncio.run(main())


def test_a_disk_of_compute_engine_whose_size_is_no_number_is_the_error_of_its_group():
    """It ended the refresh of all groups."""
    _, cloud, faulty = spoiled("gce")
    faulty.spoil("diskSizeGb", "large")

    async def main():
        for group in await cloud.refresh():
            assert (group.stale, group.template) == ("", None)
            assert "diskSizeGb" in group.template_error

    asyncio.run(main())


def test_an_instance_type_of_aws_without_cpus_has_those_of_the_shipped_table():
    """One that is not in the table is unknown."""

    async def answer(_operation, _parameters):
        return {"InstanceTypes": [{"InstanceType": "m5.large"}, {"InstanceType": "z99.large"}]}

    types = InstanceTypes(AwsApi(answer))
    asyncio.run(types.refresh(Instant(1), {"m5.large"}))
    assert types.by_name["m5.large"].vcpu == 2
    assert "z99.large" not in types.by_name


def test_a_group_of_aws_without_its_name_is_an_error():
    """Nobody knows which group is missing, so none may count as gone."""

    async def answer(_operation, _parameters):
        return {"AutoScalingGroups": [{"AutoScalingGroupName": "web"}, {"MinSize": 1}]}

    with pytest.raises(CloudError, match="a group without AutoScalingGroupName"):
        asyncio.run(AwsApi(answer).groups_by_name(["web", "system"]))
