"""Orders that a cloud does not answer, or answers about with an old size: what a provider does next."""

from __future__ import annotations

import asyncio

import pytest
from tests.clouds.faults import Fault
from tests.clouds.vendors import ALL, spoiled

from kubetide.clouds.common.readings import attempt
from kubetide.units.time import minutes


@pytest.mark.parametrize("kind", ["lost before", "lost after", "slow", "html"])
@pytest.mark.parametrize("vendor", ALL)
def test_a_deletion_without_an_answer_counts_for_the_minimum(vendor, kind):
    """Nobody knows whether it was carried out: no other machine goes below the minimum, and the same one may go."""
    for first in range(5):
        here, cloud, faulty = spoiled(vendor, page=500)
        here.fleet.grow(here.system, 1)

        async def main(here=here, cloud=cloud, faulty=faulty, first=first):
            await here.clock.sleep(minutes(1))
            await cloud.refresh()
            one, other = (here.node_id(here.system, each.name) for each in here.fleet.living(here.system))
            faulty.set(Fault(kind, first=first, times=1))
            await attempt(cloud.delete_nodes(here.id_of(here.system), [one]))
            faulty.set(None)
            for node in (other, one):
                await attempt(cloud.delete_nodes(here.id_of(here.system), [node]))
                assert here.fleet.groups[here.system].target >= 1
            await here.clock.sleep(minutes(2))
            system, _ = await cloud.refresh()
            assert (here.fleet.groups[here.system].target, system.target_size, system.stale) == (1, 1, "")

        asyncio.run(main())


@pytest.mark.parametrize("vendor", ALL)
def test_a_size_of_before_a_deletion_is_not_taken_for_new(vendor):
    """A cloud that answers with an older size would let a second deletion pass the minimum."""
    here, cloud, faulty = spoiled(vendor, page=500)
    here.fleet.grow(here.system, 1)

    async def main():
        await here.clock.sleep(minutes(1))
        one, other = (here.node_id(here.system, each.name) for each in here.fleet.living(here.system))
        faulty.set(Fault("again", times=1000))
        await cloud.refresh()
        await cloud.delete_nodes(here.id_of(here.system), [one])
        await here.clock.sleep(minutes(2))
        await cloud.refresh()
        _, error = await attempt(cloud.delete_nodes(here.id_of(here.system), [other]))
        assert "min size reached" in error
        await attempt(cloud.increase_size(here.id_of(here.system), 1))
        assert here.fleet.groups[here.system].target in {1, 2}

    asyncio.run(main())


def test_a_question_about_an_operation_that_fails_is_not_its_failure():
    """The size that was asked for stays, and the question is asked again at the next refresh."""
    here, cloud, faulty = spoiled("azure", page=500)

    async def main():
        await cloud.refresh()
        here.fake.operation = ("InProgress", None)
        await cloud.increase_size(here.web, 2)
        here.fake.calls.clear()
        faulty.set(Fault("status", status=403, times=1))
        assert [one.target_size for one in await cloud.refresh()] == [1, 2]
        assert "GET virtualMachineScaleSets" not in here.fake.calls
        here.fake.operation = ("Failed", {"code": "AllocationFailed", "message": "none left"})
        await cloud.refresh()
        assert (here.fake.polls, "GET virtualMachineScaleSets" in here.fake.calls) == (1, True)

    asyncio.run(main())


@pytest.mark.parametrize("vendor", ALL)
def test_an_increase_after_a_deletion_without_an_answer_buys_one(vendor):
    """The size that it begins with is read again; that of before the deletion would buy two."""
    for first in range(5):
        here, cloud, faulty = spoiled(vendor, page=500)

        async def main(here=here, cloud=cloud, faulty=faulty, first=first):
            await here.clock.sleep(minutes(1))
            await cloud.refresh()
            here.fleet.grow(here.web, 1)
            await here.clock.sleep(minutes(2))
            await cloud.refresh()
            [machine] = here.fleet.living(here.web)
            faulty.set(Fault("lost after", first=first, times=1))
            await attempt(cloud.delete_nodes(here.id_of(here.web), [here.node_id(here.web, machine.name)]))
            faulty.set(None)
            before = here.fleet.groups[here.web].target
            await cloud.increase_size(here.id_of(here.web), 1)
            assert here.fleet.groups[here.web].target == before + 1

        asyncio.run(main())


@pytest.mark.parametrize("vendor", ALL)
def test_an_increase_without_an_answer_is_seen_at_the_next_refresh(vendor):
    """The machines come all the same: a size of before the order would have the loop order them again."""
    for first in range(3):
        here, cloud, faulty = spoiled(vendor, page=500)

        async def main(here=here, cloud=cloud, faulty=faulty, first=first):
            await here.clock.sleep(minutes(1))
            await cloud.refresh()
            faulty.set(Fault("lost after", first=first, times=1))
            await attempt(cloud.increase_size(here.id_of(here.web), 1))
            faulty.set(None)
            shown = {one.id: one.target_size for one in await cloud.refresh()}
            assert shown[here.id_of(here.web)] == here.fleet.groups[here.web].target

        asyncio.run(main())
