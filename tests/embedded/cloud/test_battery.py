from __future__ import annotations

import asyncio

import msgspec
import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import CallFailure, CloudFaults, EmbeddedCloud, GroupSpec, Window
from kubetide.ports.cloud import NewGroup
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes, parse_rfc3339


class Faults:
    """Puts another schedule of faults into a cloud while it runs."""

    def __init__(self, cloud, clock):
        self.cloud, self.clock = cloud, clock

    async def run_out(self, group):
        self.cloud._faults = CloudFaults(stock_outs=(Window(self.clock.now(), group=group),))

    async def refuse(self, cause):
        calls = ("refresh", "increase_size", "decrease_target_size", "delete_nodes")
        failure = CallFailure(Window(self.clock.now()), calls=calls, cause=cause)
        self.cloud._faults = CloudFaults(call_failures=(failure,))

    async def heal(self):
        self.cloud._faults = CloudFaults()


CREATABLE = [
    GroupSpec(name=f"auto-{kind}", instance_type=kind, max_size=2, zones=("zone-b",), price_per_hour=price)
    for kind, price in (("m5.large", 0.5), ("c5.large", None))
]


def two_groups():
    return [
        GroupSpec(name="empty", instance_type="m5.large", max_size=3),
        GroupSpec(name="kept", instance_type="m5.large", min_size=1, max_size=2),
    ]


def play(test, *, keep=None):
    """Run a test with an embedded cloud of two groups."""

    async def main(clock):
        groups = two_groups()
        cloud = EmbeddedCloud(
            EmbeddedCluster(Store(), clock), clock, seed=1, groups=groups, creatable=CREATABLE, keep=keep
        )
        await cloud.start()
        machines = asyncio.create_task(cloud.run())
        await test(cloud, clock)
        machines.cancel()

    run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_embedded_cloud_passes_the_battery(case):
    """The embedded cloud does what the Cloud port promises."""

    async def test(cloud, clock):
        await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(5)))

    play(test)


@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
def test_the_embedded_cloud_passes_the_battery_of_creation(case):
    """The embedded cloud creates and deletes groups as the port promises."""

    async def test(cloud, clock):
        await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(5)))

    play(test)


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
def test_the_embedded_cloud_passes_the_battery_of_faults(case):
    """The embedded cloud does so while things go wrong."""

    async def test(cloud, clock):
        faults = Faults(cloud, clock)
        await case(FailingCloud(cloud, clock, group="empty", kept="kept", patience=minutes(5), faults=faults))

    play(test)


def test_all_or_none_of_an_atomic_increase():
    """An atomic increase that cannot be had in full orders nothing."""

    async def test(cloud, clock):
        await cloud.atomic_increase_size("empty", 2)
        await Faults(cloud, clock).run_out("empty")
        with pytest.raises(CloudError) as caught:
            await cloud.atomic_increase_size("empty", 1)
        assert caught.value.cause == "OutOfCapacity"
        empty, _ = await cloud.refresh()
        assert empty.target_size == 2

    play(test)


def test_a_group_is_made_used_and_deleted():
    """A made group is empty, grows like any other, lives on after a restart, and goes once it is empty."""

    async def test(cloud, clock):
        new = NewGroup(id="extra", max_size=2, instance_type="c5.large", labels={"team": "shop"})
        group = await cloud.create_group(new)
        assert (group.autoprovisioned, group.target_size) == (True, 0)
        with pytest.raises(CloudError, match="exists"):
            await cloud.create_group(new)
        await cloud.increase_size("extra", 1)
        await clock.sleep(minutes(5))
        again = EmbeddedCloud(
            EmbeddedCluster(Store(), clock), clock, seed=1, groups=two_groups(), stored=stored[-1]
        )
        [restarted] = [one for one in await again.refresh() if one.id == "extra"]
        assert restarted.template.node.metadata.labels["team"] == "shop"
        [machine] = restarted.instances
        with pytest.raises(CloudError, match="has 1 machines"):
            await again.delete_group("extra")
        for refused in ("empty", "nowhere"):
            with pytest.raises(CloudError):
                await cloud.delete_group(refused)
        await cloud.delete_nodes("extra", [machine.provider_id])
        await clock.sleep(minutes(5))
        await cloud.delete_group("extra")
        assert [one.id for one in await cloud.refresh()] == ["empty", "kept"]

    stored = []
    play(test, keep=stored.append)


def test_a_group_that_cannot_be_made():
    """An unknown type, a missing name and a market that there is not are refused."""

    async def test(cloud, _clock):
        good = NewGroup(id="extra", max_size=2, instance_type="c5.large")
        for change in ({"instance_type": "x"}, {"id": ""}, {"market": "spot"}, {"min_size": 5}):
            with pytest.raises(CloudError):
                await cloud.create_group(msgspec.structs.replace(good, **change))

    play(test)
