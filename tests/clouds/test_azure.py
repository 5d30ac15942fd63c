"""What is Azure's own in its provider: capacities, operations, and lists of machines that may be old."""

from __future__ import annotations

import msgspec
import pytest
from tests.clouds.vendors import Azure
from tests.clouds.vendors.azure import model
from tests.clouds.vendors.vendor import group_in

from kubetide.clouds.azure.machines import read_machines
from kubetide.clouds.azure.model import InstanceView, Machine, MachineProperties, ScaleSet, SetProperties
from kubetide.clouds.azure.status import StatusRules
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes, seconds


def test_a_decrease_changes_nothing():
    """Machines that exist stay, and their number stays the target."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 2)
        await cloud.decrease_target_size("web", 1)
        group = await group_in(cloud, "web")
        assert (group.target_size, len(group.instances)) == (2, 2)
        assert here.fake.calls.count("PUT web") == 1

    Azure().with_groups().play(story)


def test_throttled_lists_of_machines_wait_as_reported():
    """Machines that may not be listed stay as they were, and are not asked for before the time that the cloud says."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await cloud.increase_size("web", 1)
        here.fake.errors = [(429, "TooManyRequests", {"Retry-After": "600"})]
        here.fake.calls.clear()
        for _ in range(2):
            group = await group_in(cloud, "web")
            assert (group.target_size, group.instances, group.stale) == (1, (), "")
        assert here.fake.calls == ["GET virtualMachines"]
        await here.clock.sleep(minutes(11))
        assert len((await group_in(cloud, "web")).instances) == 1

    Azure().with_groups().play(story)


def test_an_atomic_increase_waits_and_says_why_it_failed():
    """All come or none: the operation's own error is the error of the increase."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.operation = ("Failed", {"code": "ZonalAllocationFailed", "message": "none left"})
        with pytest.raises(CloudError, match="ZonalAllocationFailed") as found:
            await cloud.atomic_increase_size("web", 2)
        assert found.value.cause == "OutOfCapacity"
        assert (await group_in(cloud, "web")).target_size == 0
        here.fake.operation = ("Succeeded", None)
        await cloud.atomic_increase_size("web", 2)
        assert (await group_in(cloud, "web")).target_size == 2

    Azure().with_groups().play(story)


def test_a_set_edited_by_hand_is_read_again():
    """With the switch, a size holds only for the set as it was read; once it is read anew."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.etag += 1
        await cloud.increase_size("web", 1)
        assert here.fake.calls.count("PUT web") == 2
        assert here.fleet.groups["web"].target == 1

    Azure(etag=True).with_groups().play(story)


def test_a_set_that_grew_by_another_hand_is_not_asked_beyond_the_target():
    """Read anew, the set gets the size that was meant, and no order where it is that large already."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fleet.set_target("web", 1)
        here.fake.etag += 1
        await cloud.increase_size("web", 2)
        assert (here.fake.calls.count("PUT web"), here.fleet.groups["web"].target) == (2, 2)
        here.fleet.set_target("web", 4)
        here.fake.etag += 1
        await cloud.increase_size("web", 1)
        assert here.fake.calls.count("PUT web") == 3
        assert (await group_in(cloud, "web")).target_size == 4

    Azure(etag=True).with_groups().play(story)


def test_without_etags_too_an_increase_ends_no_machines_that_others_have_asked_for_since():
    """A set that is as large by now gets no order; the next increase begins with that size."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fleet.set_target("web", 2)
        await cloud.increase_size("web", 1)
        assert (here.fake.calls.count("PUT web"), here.fleet.groups["web"].target) == (0, 2)
        assert (await group_in(cloud, "web")).target_size == 2
        await cloud.increase_size("web", 1)
        assert here.fleet.groups["web"].target == 3

    Azure().with_groups().play(story)


def test_a_size_that_was_just_set_holds_over_a_list():
    """A list lowers a set's size only once its machines are deleted; until then the size after the order counts."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 3)
        group = await group_in(cloud, "web")
        here.fake.lists_before = {"system": 0, "web": 3}
        await here.clock.sleep(seconds(50))
        await cloud.delete_nodes("web", [group.instances[0].provider_id])
        await here.clock.sleep(seconds(20))
        here.fake.calls.clear()
        assert (await group_in(cloud, "web")).target_size == 2
        assert "GET virtualMachineScaleSets" in here.fake.calls
        await here.clock.sleep(minutes(2))
        assert (await group_in(cloud, "web")).target_size == 3

    Azure().with_groups().play(story)


def test_an_increase_that_fails_later_is_read_back_at_once():
    """Its operation is asked about once a refresh, and when it has failed, sets and machines are listed anew."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.operation = ("InProgress", None)
        await cloud.increase_size("web", 2)
        assert (await group_in(cloud, "web")).target_size == 2
        here.fake.operation = ("Failed", {"code": "AllocationFailed", "message": "none left"})
        here.fake.calls.clear()
        assert (await group_in(cloud, "web")).target_size == 0
        assert "GET virtualMachineScaleSets" in here.fake.calls
        await cloud.refresh()
        assert here.fake.polls == 2

    Azure().with_groups().play(story)


def test_machines_are_listed_anew_when_an_increase_is_done():
    """A machine that failed meanwhile is seen then, not only when the list is five minutes old."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 1)
        here.fake.operation = ("InProgress", None)
        assert (await group_in(cloud, "web")).instances[0].error is None
        here.fake.failed = {one.name for one in here.fleet.groups["web"].machines}
        assert (await group_in(cloud, "web")).instances[0].error is None
        here.fake.operation = ("Succeeded", None)
        assert (await group_in(cloud, "web")).instances[0].error.error_code == "provisioning-state-failed"

    Azure(fast_delete=True).with_groups().play(story)


def test_a_deletion_that_is_replaced_later_is_ordered_once_more():
    """Another change of the set ends it; a second time it is given up, and the set is read."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 2)
        group = await group_in(cloud, "web")
        here.fake.operation = ("Failed", {"code": "OperationPreempted", "message": "replaced"})
        await cloud.delete_nodes("web", [group.instances[0].provider_id])
        for _ in range(3):
            await cloud.refresh()
        assert here.fake.calls.count("POST delete") == 2

    Azure().with_groups().play(story)


def test_ids_are_ours_only_as_azure_writes_them():
    """An id is checked before its machine is looked for: another prefix is no node of ours, and no order."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 2)
        (mine, _) = (await group_in(cloud, "web")).instances
        assert await cloud.group_of(mine.provider_id.replace("web", "WEB")) == "web"
        assert await cloud.group_of(mine.provider_id.upper()) is None
        for other in (mine.provider_id.upper(), "aws:///z/i", ""):
            with pytest.raises(CloudError, match="isn't in Azure resource ID format"):
                await cloud.delete_nodes("web", [other])

    Azure().with_groups().play(story)


def test_a_machine_whose_id_cannot_be_read_is_left_out():
    """The others of its set are there."""
    scale_set = ScaleSet(name="web", properties=SetProperties(orchestration_mode="Uniform"))
    good = "/subscriptions/s/resourceGroups/MC/providers/Microsoft.Compute/virtualMachineScaleSets/web/virtualMachines/0"
    listed = [Machine(id=""), Machine(id="/odd/1"), Machine(id=good, instance_id="0")]
    (found,) = read_machines(scale_set, listed, StatusRules(), {})
    assert found.provider_id == f"azure://{good.replace('MC', 'mc')}"


@pytest.mark.parametrize(("view", "state"), [({}, "Running"), ({"statuses": []}, "Creating")])
def test_a_failed_machine_of_a_flexible_set_runs_unless_its_statuses_are_known(view, state):
    """Sets of this kind are listed without views, so none says anything of power."""
    flexible = ScaleSet(properties=SetProperties(orchestration_mode="Flexible"))
    path = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m"
    machine = Machine(
        id=path,
        properties=MachineProperties(
            provisioning_state="Failed", instance_view=msgspec.convert(view, InstanceView)
        ),
    )
    [found] = read_machines(flexible, [machine], StatusRules(fast_delete=True), {})
    assert found.status.state == state


def test_a_machine_of_a_flexible_set_without_a_state_has_none():
    """It counts as running, as one of a uniform set."""
    flexible = ScaleSet(properties=SetProperties(orchestration_mode="Flexible"))
    path = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m"
    [found] = read_machines(flexible, [Machine(id=path)], StatusRules(), {})
    assert (found.status.state, found.as_instance().state) == (None, "Running")


def test_a_machine_that_is_gone_a_moment_after_its_deletion_may_be_deleted_again():
    """The set is read no earlier for it, and it is not ordered twice."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 2)
        [first, _] = (await group_in(cloud, "web")).instances
        await cloud.delete_nodes("web", [first.provider_id])
        here.fake.calls.clear()
        await cloud.delete_nodes("web", [first.provider_id])
        assert here.fake.calls == []

    Azure().with_groups().play(story)


def test_the_first_set_that_cannot_be_read_ends_the_start():
    """In the order of the flags, whether its machines cannot be listed or its kind is switched off."""

    async def story(here):
        here.fake.models["system"] = model("system", "")
        here.fake.models["system"]["properties"]["orchestrationMode"] = "Flexible"
        here.fake.broken = {"virtualMachines": (409, "OperationNotAllowed")}
        with pytest.raises(CloudError, match="OperationNotAllowed"):
            await here.connect().refresh()

    Azure().with_groups().play(story)


def test_a_forced_deletion_never_makes_a_size_negative():
    """A size that is older than the machines is left as it was listed."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 2)
        group = await group_in(cloud, "web")
        here.fake.lists_before = {"system": 0, "web": 1}
        await here.clock.sleep(minutes(2))
        assert (await group_in(cloud, "web")).target_size == 1
        await cloud.delete_nodes("web", [one.provider_id for one in group.instances], force=True)
        assert (await group_in(cloud, "web")).target_size == 1

    Azure().with_groups().play(story)


def test_a_throttled_list_without_a_time_is_asked_for_again_at_once():
    """Where the size says that machines are missing, the next refresh lists them."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await cloud.increase_size("web", 1)
        here.fake.errors = [(429, "TooManyRequests", {})] * 5
        assert (await group_in(cloud, "web")).instances == ()
        assert len((await group_in(cloud, "web")).instances) == 1

    Azure().with_groups().play(story)


def test_machines_that_could_never_be_listed_are_not_taken_for_none():
    """Throttled from the start, a set says so and cannot grow; the others are there."""

    async def story(here):
        here.fake.broken = {"virtualMachines": (429, "TooManyRequests")}
        cloud = here.connect()
        for group in await cloud.refresh():
            assert ("TooManyRequests" in group.stale, group.max_size) == (True, 0)
        here.fake.broken = {}
        await here.clock.sleep(minutes(1))
        group = await group_in(cloud, "system")
        assert (group.stale, len(group.instances)) == ("", 1)

    Azure().with_groups().play(story)


def test_lists_of_machines_are_spread_over_the_jitter():
    """Sets that were listed at the same time are listed anew at different ones, none later than without jitter."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.calls.clear()
        lists = []
        for _ in range(5):
            await here.clock.sleep(minutes(1))
            await cloud.refresh()
            lists.append(here.fake.calls.count("GET virtualMachines"))
        return lists

    def groups(azure):
        return azure.with_groups(*((f"g{number}", 0, 3) for number in range(6)))

    async def with_more(here):
        for number in range(6):
            here.fleet.add(f"g{number}")
        return await story(here)

    assert groups(Azure(page=500)).play(with_more) == [0, 0, 0, 0, 8]
    spread = groups(Azure(page=500, machines_jitter=minutes(3))).play(with_more)
    assert spread[:2] == [0, 0]
    assert 0 < spread[2] < 8 <= spread[4]


def test_deletion_by_force_falls_back():
    """Where force is not allowed, machines are deleted without it; a pre-empted order is sent once more."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 3)
        ids = [one.provider_id for one in (await group_in(cloud, "web")).instances]
        here.fake.refused_changes = [(409, "OperationNotAllowed")]
        await cloud.delete_nodes("web", ids[:1])
        here.fake.refused_changes = [(409, "OperationPreempted")]
        await cloud.delete_nodes("web", ids[1:2])
        assert here.fake.calls.count("POST delete") == 4
        assert here.fleet.groups["web"].target == 1

    Azure(force_delete=True).with_groups().play(story)


def test_a_machine_that_failed_is_an_instance_with_an_error():
    """With the switch, a failed machine that does not run counts as never made."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 1)
        here.fake.failed = {one.name for one in here.fleet.groups["web"].machines}
        (instance,) = (await group_in(cloud, "web")).instances
        assert (instance.state, instance.error.error_code) == ("Creating", "provisioning-state-failed")

    Azure(fast_delete=True).with_groups().play(story)
