"""Node groups that are created like a pattern: what holds for every vendor, and the whole node loop over each."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest
from tests.clouds import creating
from tests.clouds.creating import STORIES, FleetWorld, create_fill_empty_and_delete
from tests.clouds.fakes.fleet import Fleet
from tests.clouds.vendors import VENDORS, Alibaba, Azure, Gce

from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.units.time import minutes

PLACES = VENDORS | {
    "alibaba, total capacity": partial(Alibaba, desired=False),
    "azure, by tags": partial(Azure, discovery="label:cluster=shop"),
    "gce, by prefix": partial(Gce, discovery=("mig:namePrefix=work,max=3",)),
}
STORIES_OF = [
    pytest.param(place, story, id=f"{place}-{story.__name__}")
    for place in PLACES
    for story in STORIES
    # Compute Engine lists a group as soon as it is there.
    if not place.startswith("gce") or story is not creating.a_group_that_is_listed_late_is_there_at_once
]
OBSTACLES_OF = [
    pytest.param(vendor, parts, words, id=f"{vendor}-{words}")
    for vendor in VENDORS
    for parts, words in (*VENDORS[vendor].obstacles, ({}, ""), ({"most": 0}, "its maximum size is 0"))
]


@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_vendors_pass_the_battery_of_creation(place, case):
    """Groups like a pattern are created and deleted as the port promises."""

    async def story(here):
        await case(here.under_test(here.workers, here.workers))

    PLACES[place]().with_pattern().play(story)


@pytest.mark.parametrize(("place", "story"), STORIES_OF)
def test_stories_of_creation(place, story):
    """What was created is found again, stays what it is to others, and nothing is left of what was refused."""
    PLACES[place]().with_pattern().play(story)


@pytest.mark.parametrize(("vendor", "parts", "words"), OBSTACLES_OF)
def test_what_cannot_be_copied_is_an_obstacle(vendor, parts, words):
    """A group that another manages, or whose machines are of its own type, is no pattern, and says why; all others are."""

    async def story(here):
        cloud = here.connect()
        assert bool(await cloud.group_candidates()) == (not words)
        [group] = await cloud.refresh()
        begin = f"{here.mark}: no group can be created like this one: "
        assert [words in one and one.startswith(begin) for one in group.warnings or ()] == [True] * bool(
            words
        )

    VENDORS[vendor]().with_pattern(**parts).play(story)


@pytest.mark.parametrize("vendor", VENDORS)
def test_types_that_are_of_no_use_are_named_and_asked_for_seldom(vendor):
    """A type that there is not, or that the pattern cannot have, is a warning; the others hold, and at rest nothing more is asked."""

    async def story(here):
        cloud = here.connect()
        found = [one.new.id for one in await cloud.group_candidates()]
        assert found == [one for one in here.candidates if one.startswith(here.large)]
        [group] = await cloud.refresh()
        assert group.warnings == tuple(f"{here.mark}: instance type {one} {why}" for one, why in here.useless)
        here.fake.calls.clear()
        await here.clock.sleep(minutes(1))
        await cloud.refresh()
        assert [one.new.id for one in await cloud.group_candidates()] == found
        assert tuple(here.fake.calls) == here.pattern_at_rest

    here = VENDORS[vendor](page=500)
    here.with_pattern(" ".join((here.types.split()[0], *dict(here.useless)))).play(story)


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("identity", "other", "$.identity"),
        ("properties", 5, "$.properties"),
        ("id", None, ""),
        ("plan", 5, ""),
    ],
)
def test_a_pattern_that_azure_shows_in_another_form_is_an_obstacle(part, value, words):
    """The list of all sets is good, and the set itself is not: a warning names the field, and the group is as ever."""
    here = Azure().with_pattern()
    send = here.send

    async def spoiled(request):
        answer = await send(request)
        if not request.url.endswith("/workers"):
            return answer
        return answer._replace(body=json.dumps({**json.loads(answer.body), part: value}).encode())

    here.send = spoiled

    async def main():
        cloud = here.connect()
        [group] = await cloud.refresh()
        assert (group.stale, bool(await cloud.group_candidates())) == ("", not words)
        warned = ["it cannot be read" in one and words in one for one in group.warnings or ()]
        assert warned == [True] * bool(words)

    asyncio.run(main())


@pytest.mark.parametrize("vendor", ["gce", "tencent"])
def test_a_model_that_lacks_what_the_api_promises_is_an_error_of_the_order(vendor):
    """It names the field and what has it; nothing is created."""
    here = VENDORS[vendor]().with_pattern()
    if vendor == "gce":
        del here.fake.templates["workers-v1"]["properties"]["metadata"]["items"][1]["key"]
        words = "the instance template workers-v1 cannot be copied.*'key'"
    else:
        here.fake.configurations[here.fake.groups[here.workers]["LaunchConfigurationId"]].pop("ImageId")
        words = "the launch configuration .* cannot be copied.*'ImageId'"

    async def story(here):
        cloud, there = here.connect(), here.there()
        with pytest.raises(CloudError, match=words):
            await cloud.create_group((await cloud.group_candidates())[0].new)
        assert here.there() == there

    here.play(story)


@pytest.mark.slow
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_loop_creates_a_group_and_deletes_it_again(vendor):
    """Pods that no group's machines can hold get a group of their own; it goes when it has been empty for a while."""

    def world_of(clock, groups, **settings):
        here = VENDORS[vendor](fleet=Fleet(clock, boot_s=60, shown_s=0), page=500)
        here.with_pattern(here.types.split()[0], most=9, **dict(here.parts_for_the_loop))
        del here.fleet.groups[here.plain]
        return FleetWorld(clock, groups, here=here, **settings)

    vendor_of = VENDORS[vendor]
    create_fill_empty_and_delete(vendor_of.workers, world_of, begins=vendor_of.begins)
