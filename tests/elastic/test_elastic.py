"""ElasticWorkloads in virtual time: the loops act on their sections, and advice follows the schedule as acting does."""

from __future__ import annotations

import msgspec
import pytest
from tests.elastic.running import HORIZONTAL, play, replay

from kubetide.objects.kinds import (
    HPAS,
    VPA_CHECKPOINTS,
    VPAS,
)
from kubetide.runtime.guard import Advice
from kubetide.units.time import minutes, parse_rfc3339


def test_all_sections_act_and_replay_agrees():
    """The load and the clock scale the target, usage makes a recommendation; the spec stays as its author wrote it."""
    rules = [{"name": "nine", "start": "0 9 * * *", "end": "0 18 * * *", "minReplicas": 7, "maxReplicas": 8}]

    async def story(world):
        world.usage.milli = 160
        vertical = {"updatePolicy": {"updateMode": "Off"}}
        sections = {"horizontal": HORIZONTAL, "vertical": vertical, "schedule": {"rules": rules}}
        await world.add(**sections, forecast={"timeZone": "Europe/Berlin"})
        written = (await world.get()).spec
        async with world.running():
            await world.clock.sleep(minutes(40))
            assert await world.replicas() == 4  # two pods at 80 % of their requests, 50 % is the target
            assert await world.accepted() == (
                "True",
                "Accepted",
                "the sections horizontal, vertical, schedule, forecast are followed",
            )
            await world.clock.sleep(minutes(25))
            assert await world.replicas() == 7
        found = await world.get()
        assert found.spec == written
        status = found.status
        assert (status.horizontal.current_replicas, status.horizontal.desired_replicas) == (7, 7)
        assert [one.type for one in status.horizontal.conditions] == [
            "AbleToScale",
            "ScalingActive",
            "ScalingLimited",
        ]
        assert status.vertical.recommendation.container_recommendations[0].container_name
        assert (status.schedule.min_replicas, status.schedule.max_replicas) == (7, 8)
        assert (status.schedule.rules, status.schedule.next_change) == (("nine",), "2026-03-02T18:00:00Z")
        assert ("ElasticWorkload", "web", "SuccessfulRescale") in await world.events()
        assert not any(kind == "HorizontalPodAutoscaler" for kind, _, _ in await world.events())
        [checkpoint] = (await world.cluster.list(VPA_CHECKPOINTS)).items
        assert checkpoint.spec.vpa_object_name == "web"
        assert not (await world.cluster.list(HPAS)).items
        assert not (await world.cluster.list(VPAS)).items

    replay(play(story))


def test_the_schedule_goes_on_where_it_was_after_an_outage():
    """A process that starts within a window applies its floor at once; after the window the horizontal bounds hold again."""
    rules = [{"name": "busy", "start": "30 8 * * *", "end": "0 9 * * *", "minReplicas": 6}]

    async def story(world):
        await world.add(horizontal={**HORIZONTAL, "maxReplicas": 4}, schedule={"rules": rules})
        await world.clock.sleep(minutes(40))
        async with world.running():
            await world.clock.sleep(minutes(1))
            assert await world.replicas() == 6
            await world.clock.sleep(minutes(20))
            assert (await world.get()).status.schedule.min_replicas is None
            assert await world.replicas() <= 4

    play(story)


def asked_sizes(world, loop):
    """Return the sizes that a loop requests, without repetitions in a row."""
    found = []
    for record in world.records.lines:
        if record.loop == loop:
            commands = msgspec.json.decode(bytes(record.commands))
            runs = commands if loop == "horizontal" else [one["change"] for one in commands["runs"]]
            for one in runs:
                if one.get("replicas") is not None and found[-1:] != [one["replicas"]]:
                    found.append(one["replicas"])
    return found


BUSY = {"name": "busy", "start": "30 8 * * *", "end": "0 9 * * *", "minReplicas": 6, "maxReplicas": 9}


@pytest.mark.parametrize("guard", [None, Advice()], ids=["acts", "advises"])
def test_advice_follows_the_schedule_as_acting_does(guard):
    """A run that only advises decides by the bounds of a window for as long as they hold, and so does its replay."""

    async def story(world):
        world.usage.milli = 100
        await world.add(horizontal={**HORIZONTAL, "maxReplicas": 4}, schedule={"rules": [BUSY]})
        await world.add_deployment("night", 3)
        night = {"name": "night", "at": "20 8 * * *", "replicas": 1}
        await world.add("night", target="night", schedule={"rules": [night]})
        before = [await world.get(name) for name in ("web", "night")]
        async with world.running():
            await world.clock.sleep(minutes(25))
            early = asked_sizes(world, "horizontal"), asked_sizes(world, "schedules")
            await world.clock.sleep(minutes(34))
            busy = asked_sizes(world, "horizontal"), asked_sizes(world, "schedules")
            await world.clock.sleep(minutes(11))
        assert (early, busy) == (([], [1]), ([6], [1]))
        if guard is not None:
            assert [await world.get(name) for name in ("web", "night")] == before
            assert (await world.replicas(), await world.replicas("night")) == (2, 3)

    world = play(story, guard=guard)
    last = max(record.now for record in world.records.lines if b'"replicas":6' in bytes(record.commands))
    assert last < parse_rfc3339("2026-03-02T09:01:00Z")
    statuses = [
        one for one in world.records.lines if one.loop == "elastic" and b'"status"' in bytes(one.commands)
    ]
    assert len(statuses) <= 4, "what has been decided once is not decided again"
    replay(world)


def test_a_schedule_scales_to_zero_at_night():
    """While the schedule asks for 0 replicas the horizontal section rests; it goes on from the morning's floor."""
    rules = [
        {"name": "off", "at": "10 8 * * *", "replicas": 0},
        {"name": "on", "at": "0 9 * * *", "minReplicas": 3, "maxReplicas": 9},
    ]

    async def story(world):
        await world.add(horizontal=HORIZONTAL, schedule={"rules": rules})
        async with world.running():
            await world.clock.sleep(minutes(30))
            assert await world.replicas() == 0
            await world.clock.sleep(minutes(31))
            assert await world.replicas() >= 3

    play(story)
