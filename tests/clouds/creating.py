"""Groups that are created like a pattern: stories that hold for every provider, and one of the whole node loop.

A story is told a vendor (``tests.clouds.vendors``) with a pattern, over its served fake.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.clouds.joining import JoiningWorld
from tests.clouds.vendors.vendor import first_of, group_in
from tests.nodes.live import play, replayed

from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes, seconds

PATTERN_CPU, CREATED_CPU = "2", "16"


async def a_later_process_finds_what_an_earlier_one_created(here):
    """Created groups are found by what marks them, and are still this program's to delete with all that belongs to them."""
    there, earlier = here.there(), here.connect()
    before = [one.id for one in await earlier.refresh()]
    made = [await earlier.create_group(one.new) for one in (await earlier.group_candidates())[:2]]
    later = here.connect()
    seen = await later.refresh()
    assert [one.id for one in seen] == sorted([*before, *(one.id for one in made)])
    assert [one for one in seen if one.autoprovisioned] == made
    for one in made:
        await later.delete_group(one.id)
    assert [one.id for one in await later.refresh()] == before
    assert here.there() == there


async def a_pattern_that_lost_its_mark_keeps_its_groups(here):
    """No more are created like it; those that were stay known, and can be deleted."""
    cloud = here.connect()
    made = await cloud.create_group(await first_of(cloud))
    here.lose_mark()
    await here.clock.sleep(minutes(11))
    assert [one.id for one in await cloud.refresh() if one.autoprovisioned] == [made.id]
    assert await cloud.group_candidates() == ()
    await cloud.delete_group(made.id)
    assert made.id not in [one.id for one in await cloud.refresh()]


async def a_group_that_a_person_names_is_no_longer_ours_to_delete(here):
    """With ``--nodes`` somebody has taken over a group that was created: it stays, however empty."""
    cloud = here.connect()
    made = await cloud.create_group(await first_of(cloud))
    there, name = here.there(), here.id_of(here.created(made.id))
    later = here.connect(NodeSpec(name, 0, 5))
    group = await group_in(later, name)
    assert (group.autoprovisioned, group.max_size) == (False, 5)
    with pytest.raises(CloudError, match="--nodes names it"):
        await later.delete_group(name)
    assert here.there() == there


async def a_group_that_is_listed_late_is_there_at_once(here):
    """What was just created is known and grows, also while the cloud's list does not have it yet."""
    cloud = here.connect()
    new = await first_of(cloud)
    here.hide(new.id)
    made = await cloud.create_group(new)
    assert made.id == new.id
    await cloud.increase_size(made.id, 1)
    for _ in range(2):
        await here.clock.sleep(minutes(2))
        group = await group_in(cloud, made.id)
        assert (group.target_size, len(group.instances), group.stale) == (1, 1, "")


async def what_cannot_be_created_is_refused(here):
    """Names that are taken, and what the cloud itself refuses, are errors; nothing is left behind."""
    cloud = here.connect()
    new = await first_of(cloud)
    with here.taken(new.id):
        there = here.there()
        with pytest.raises(CloudError, match=f"there is {here.called} of this name already"):
            await cloud.create_group(new)
        assert here.there() == there
    there = here.there()
    for code, cause in here.refused_creations():
        with pytest.raises(CloudError, match=code) as caught:
            await cloud.create_group(new)
        assert caught.value.cause == cause
        assert here.there() == there
    await cloud.create_group(new)


async def what_has_machines_is_not_deleted(here):
    """Neither while machines are on order, nor when one came that nobody has looked at, nor while one is to go."""
    cloud = here.connect()
    made = await cloud.create_group(await first_of(cloud))
    name = here.created(made.id)
    here.fleet.sold_out.add(name)
    here.fleet.grow(name, 1)
    await cloud.refresh()
    with pytest.raises(CloudError, match="it has machines"):
        await cloud.delete_group(made.id)
    here.fleet.set_target(name, 0)
    await cloud.refresh()
    here.fleet.sold_out.clear()
    here.fleet.grow(name, 1)
    await here.clock.sleep(seconds(2))
    with pytest.raises(CloudError, match="it has machines"):
        await cloud.delete_group(made.id)
    here.fleet.groups[name].target = 0
    await cloud.refresh()
    with pytest.raises(CloudError, match="it has machines"):
        await cloud.delete_group(made.id)
    assert name in here.fleet.groups


STORIES = (
    a_later_process_finds_what_an_earlier_one_created,
    a_pattern_that_lost_its_mark_keeps_its_groups,
    a_group_that_a_person_names_is_no_longer_ours_to_delete,
    a_group_that_is_listed_late_is_there_at_once,
    what_cannot_be_created_is_refused,
    what_has_machines_is_not_deleted,
)


async def created_like_its_pattern(here):
    """Create one of the candidates, which are as the vendor says, and return the group, which is as its candidate said."""
    cloud = here.connect()
    candidates = {one.new.id: one for one in await cloud.group_candidates()}
    assert tuple(candidates) == here.candidates
    meant = candidates[here.meant]
    assert meant.new.zones == (here.meant_zone,)
    made = await cloud.create_group(meant.new)
    expected = replace(meant.group, exists=True, instances=(), debug=made.debug)
    source = made.template.source if here.has_source_of_its_own else expected.template.source
    assert made == replace(expected, template=replace(expected.template, source=source))
    await cloud.increase_size(made.id, 1)
    assert here.fleet.groups[here.created(made.id)].target == 1, "whatever the cloud calls it"
    return made


class FleetWorld(JoiningWorld):
    """A world whose machines are those of a vendor with a pattern."""

    def __init__(self, clock, groups, *, here, **settings):
        self.here = here
        super().__init__(clock, groups, provider=lambda _clock: here.connect(), **settings)

    async def machines(self):
        fleet = self.here.fleet
        return {
            one.name: (group, self.here.node_id(group, one.name))
            for group in fleet.groups
            for one in fleet.machines(group)
            if fleet.state(one) != "Creating"
        }

    def cpu(self, group):
        return PATTERN_CPU if group in self.names else CREATED_CPU

    def sizes(self):
        fleet = self.here.fleet
        return {name: (group.target, len(fleet.machines(name))) for name, group in fleet.groups.items()}


def create_fill_empty_and_delete(pattern, world_of, *, begins):
    """Play the story of a pattern of machines of 2 CPU that others of 16 CPU may be like.

    ``begins`` is how the name of what is created begins.
    """

    async def story(world):
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(minutes(4))
        assert world.sizes() == {pattern: (1, 1)}, "no group is created while one there is will do"
        await world.deploy("large", replicas=2, cpu="10")
        await world.after(minutes(8))
        assert world.pending == []
        [created] = world.sizes().keys() - {pattern}
        assert created.startswith(begins), created
        assert world.sizes() == {pattern: (1, 1), created: (2, 2)}
        await world.scale("large", 0)
        await world.after(minutes(30))
        assert world.sizes() == {pattern: (1, 1)}

    settings = {"node_autoprovisioning_enabled": True, "expander": "least-waste"}
    world = play(story, (pattern,), world_of=world_of, **settings)
    assert replayed(world) > 30
