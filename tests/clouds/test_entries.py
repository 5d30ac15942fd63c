"""Lists of clouds, one entry of which cannot be read: it is told where it matters, and hides no other."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.clouds.vendors import VENDORS, spoiled

from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes


class Entry:
    """One entry of a list, a field of which has another type while it is spoiled: no list of a vendor has such."""

    def __init__(self, here, key, name, field):
        self._send, self._key, self._name, self._field = here.send, key, name, field
        self.is_spoiled = False
        here.send = self

    async def __call__(self, request):
        answer = await self._send(request)
        return answer._replace(body=json.dumps(self._broken(json.loads(answer.body))).encode())

    def _broken(self, value):
        if isinstance(value, list):
            return [self._broken(one) for one in value]
        if not isinstance(value, dict):
            return value
        is_meant = self.is_spoiled and value.get(self._key) == self._name
        more = {self._field: {"new": 1}} if is_meant else {}
        return {each: self._broken(one) for each, one in value.items()} | more


@pytest.mark.parametrize(
    ("vendor", "part"),
    [
        ("alibaba", ("ScalingGroupId", "asg-system", "MaxSize")),
        ("azure", ("name", "system", "zones")),
        ("tencent", ("AutoScalingGroupId", "asg-system", "SubnetIdSet")),
    ],
)
@pytest.mark.parametrize("first", [0, 10**3], ids=["from the start", "later"])
def test_a_group_that_cannot_be_read_keeps_no_other_from_being_read(vendor, part, first):
    """It stays as it was, says why, and neither grows nor shrinks; a machine of the other may be deleted."""
    here, _, _ = spoiled(vendor, page=500)
    here.fleet.grow(here.web, 1)
    entry = Entry(here, *part)
    entry.is_spoiled = not first
    cloud = here.connect()

    async def main():
        await here.clock.sleep(minutes(1))
        before = await cloud.refresh()
        entry.is_spoiled = True
        await here.clock.sleep(minutes(2))
        system, web = await cloud.refresh()
        assert "system" in system.stale
        assert "cannot be read" in system.stale
        assert system.instances == before[0].instances
        assert (web.stale, web.target_size, len(web.instances)) == ("", 1, 1)
        with pytest.raises(CloudError, match="cannot be read"):
            await cloud.increase_size(here.id_of(here.system), 1)
        await cloud.delete_nodes(here.id_of(here.web), [web.instances[0].provider_id])
        entry.is_spoiled = False
        await here.clock.sleep(minutes(2))
        assert [(one.stale, one.target_size) for one in await cloud.refresh()] == [("", 1), ("", 0)]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("vendor", "part"),
    [
        ("alibaba", ("InstanceTypeId", "ecs.c6.large", "CpuCoreCount")),
        ("tencent", ("LaunchConfigurationId", "asc-asg-system", "InstanceType")),
    ],
)
def test_a_part_of_a_template_that_cannot_be_read_is_that_groups_alone(vendor, part):
    """Other groups have templates; the one that needs it says why it has none, or has the one of before and a warning."""
    here, _, _ = spoiled(vendor, page=500)
    if vendor == "alibaba":
        here.fake.configurations["asc-asg-system"] = {"InstanceType": "ecs.c6.large"}
    entry = Entry(here, *part)
    entry.is_spoiled = True
    cloud = here.connect()

    async def main():
        system, web = await cloud.refresh()
        assert (system.template, web.template_error, web.warnings) == (None, "", None)
        assert f"{part[1]} cannot be read" in system.template_error
        assert (system.stale, system.target_size, len(system.instances)) == ("", 1, 1)
        entry.is_spoiled = False
        await here.clock.sleep(minutes(24 * 60))
        system, _ = await cloud.refresh()
        assert (system.template_error, system.warnings) == ("", None)
        before = system.template
        entry.is_spoiled = True
        await here.clock.sleep(minutes(24 * 60))
        system, web = await cloud.refresh()
        assert (system.template, system.template_error, web.warnings) == (before, "", None)
        assert f"is used: the API's answer on {part[1]} cannot be read" in system.warnings[0]

    asyncio.run(main())


def test_an_unreadable_type_of_a_pattern_is_left_out_with_a_reason():
    """Groups of the other types can be created all the same."""
    here = VENDORS["alibaba"]().with_pattern()
    Entry(here, "InstanceTypeId", "ecs.g6.4xlarge", "CpuCoreCount").is_spoiled = True
    cloud = here.connect()

    async def main():
        workers, *_ = await cloud.refresh()
        left_out = (
            "instance type ecs.g6.4xlarge is left out: the API's answer on ecs.g6.4xlarge cannot be read"
        )
        assert [left_out in one for one in workers.warnings] == [True]
        assert {one.new.instance_type for one in await cloud.group_candidates()} == {"ecs.c6.large"}

    asyncio.run(main())


def test_an_unreadable_launch_configuration_keeps_no_group_from_being_created():
    """It is that of a group beside the pattern, and the first that is asked for."""
    here = VENDORS["tencent"](page=500).with_pattern()
    Entry(here, "LaunchConfigurationId", "asc-asg-plain", "InstanceType").is_spoiled = True
    cloud = here.connect(NodeSpec(here.plain, 0, 3))

    async def main():
        plain, _ = await cloud.refresh()
        assert "asc-asg-plain cannot be read" in plain.template_error
        assert len(await cloud.group_candidates()) == len(here.candidates)

    asyncio.run(main())
