"""Answers of clouds that go wrong, each as it was found: what a provider makes of them."""

from __future__ import annotations

import asyncio

import pytest
from tests.clouds.faults import BODIES, Fault, Faulty
from tests.clouds.vendors import VENDORS

from kubetide.clouds.aws.api import AwsApi
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes


def spoiled(vendor, **how):
    """Return a vendor with two groups, its provider, and what spoils answers to it."""
    here = VENDORS[vendor](**how).with_groups()
    here.send = Faulty(here.send, here.clock, most=100)
    return here, here.connect(), here.send


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
