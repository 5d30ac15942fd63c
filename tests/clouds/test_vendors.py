"""Each provider against a server that speaks its vendor's protocol: what holds for every vendor."""

from __future__ import annotations

from functools import partial

import pytest
from tests.clouds.vendors import VENDORS, Alibaba, Azure, Gce, Tencent
from tests.clouds.vendors.vendor import group_in

from kubetide.ports.errors import CloudError
from kubetide.testing import cloud_battery
from kubetide.testing.cloud_battery import CASES
from kubetide.testing.cloud_faults_battery import FAULT_CASES
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow
PLACES = VENDORS | {
    "alibaba, total capacity": partial(Alibaba, desired=False),
    "azure, flexible": partial(Azure, flexible=True),
    "gce, in bulk": partial(Gce, bulk=True),
    "gce, regional": partial(Gce, regional=True),
}
FAILING = VENDORS | {"gce, regional": partial(Gce, regional=True), "azure": partial(Azure, fast_delete=True)}
# A scale set's capacity counts machines that exist, if only as being created: nothing can be withdrawn.
WITHOUT_OPEN_ORDERS = {
    cloud_battery.a_decrease_never_removes_what_exists,
    cloud_battery.a_decrease_withdraws_an_open_order,
}
CASES_OF = [
    pytest.param(place, case, id=f"{place}-{case.__name__}")
    for place in PLACES
    for case in CASES
    if not place.startswith("azure") or case not in WITHOUT_OPEN_ORDERS
]
REFUSED_ORDERS = [
    (vendor, code, cause) for vendor in VENDORS for code, cause in VENDORS[vendor].refused_orders
]


@pytest.mark.parametrize("boot_s", [5, 90], ids=["quick", "slow"])
@pytest.mark.parametrize(("place", "case"), CASES_OF)
def test_vendors_pass_the_battery(place, case, boot_s):
    """Groups do what the Cloud port promises, also when machines take a minute and a half."""

    async def story(here):
        await case(here.under_test(here.web, here.system))

    PLACES[place](boot_s=boot_s).with_groups().play(story)


@pytest.mark.parametrize("case", FAULT_CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("place", FAILING)
def test_vendors_pass_the_battery_of_faults(place, case):
    """Stock-outs are on the machines, refusals say their cause, and nothing is lost or ordered twice."""

    async def story(here):
        await case(here.failing())

    FAILING[place]().with_groups().play(story)


@pytest.mark.parametrize(("vendor", "code", "cause"), REFUSED_ORDERS)
def test_a_refused_increase_says_its_cause(vendor, code, cause):
    """The error of an increase has the cloud's code and what it means; the order is sent once, and nothing has changed."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.refuse_order(code)
        with pytest.raises(CloudError, match=code) as found:
            await cloud.increase_size(here.id_of(here.web), 1)
        assert (found.value.error_code, found.value.cause) == (code, cause)
        assert here.fake.calls.count(here.order) == 1
        assert (await group_in(cloud, here.id_of(here.web))).target_size == 0

    VENDORS[vendor]().with_groups().play(story)


@pytest.mark.parametrize("vendor", VENDORS)
def test_throttled_reads_are_repeated_after_a_pause(vendor):
    """A list that is refused for its rate is asked for again, and time passes between."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await here.clock.sleep(minutes(1))
        here.throttle()
        before = here.clock.now()
        assert [one.stale for one in await cloud.refresh()] == ["", ""]
        assert not here.fake.errors
        assert here.clock.now() > before

    VENDORS[vendor]().with_groups().play(story)


@pytest.mark.parametrize("vendor", VENDORS)
def test_calls_at_rest(vendor):
    """A minute without changes costs one list of groups, and at most one of instances for each group."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await here.clock.sleep(minutes(1))
        here.fake.calls.clear()
        await cloud.refresh()
        assert tuple(here.fake.calls) == here.at_rest

    VENDORS[vendor](page=500).with_groups().play(story)


@pytest.mark.parametrize(
    ("vendor", "call", "answer", "text"),
    [
        (Alibaba, "ess:DescribeScalingInstances", {"RequestId": "r"}, "the answer has no list"),
        (Alibaba, "ess:DescribeScalingInstances", [], "the answer cannot be read"),
        (
            Alibaba,
            "ess:DescribeScalingInstances",
            {"TotalCount": 3, "ScalingInstances": {"ScalingInstance": []}},
            "the list of instances of asg-system ends after 0 of 3",
        ),
        (Tencent, "as:DescribeAutoScalingInstances", {"RequestId": "r"}, "the answer has no list"),
        (
            Tencent,
            "as:DescribeAutoScalingInstances",
            {"TotalCount": 3, "AutoScalingInstanceSet": []},
            "the list of instances of asg-system ends after 0 of 3",
        ),
    ],
)
def test_a_list_that_ends_early_takes_no_machines_away(vendor, call, answer, text):
    """The group stays as it was: machines that are left out are not gone."""
    action = call.partition(":")[2]
    said = text if "asg-system" in text else f"{call}: {text}"

    async def story(here):
        cloud = here.connect()
        before, _ = await cloud.refresh()
        here.fake.answers[action] = answer
        system, _ = await cloud.refresh()
        assert said in system.stale
        assert system.instances == before.instances

    vendor().with_groups().play(story)
