"""ScaledObjects that mix triggers, on an embedded cluster in virtual time, beside the horizontal and the time-table loop."""

from __future__ import annotations

from tests.elastic.running import HOME, play, replay
from tests.elastic.scaled_objects import CPU, cron

from kubetide.elastic.keda.outlook import SOURCE
from kubetide.objects.kinds import EVENTS, HPAS, SCALED_OBJECTS, TIME_TABLE_KINDS
from kubetide.objects.scaled_objects import PAUSED_UP
from kubetide.units.time import between, format_rfc3339, minutes, parse_rfc3339, seconds

LOOPS = ("scaledobjects", "schedules", "horizontal")
HALF = {**CPU, "metadata": {"value": "50"}}
MORNING = cron("10 8 * * *", "30 8 * * *", 5)


async def add(world, *triggers, annotations=None, name="web", **spec):
    body = {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": list(triggers), **spec},
    }
    await world.cluster.create(SCALED_OBJECTS, body, namespace=HOME)


async def at(world, time):
    await world.clock.sleep(between(world.clock.now(), parse_rfc3339(f"2026-03-02T{time}Z")))
    return await world.replicas()


async def status(world, name="web"):
    return (await world.cluster.get(SCALED_OBJECTS.untyped, name, namespace=HOME))["status"]


async def said(world, name="web"):
    """What the conditions of an object say: reason by type."""
    return {one["type"]: one["reason"] for one in (await status(world, name))["conditions"]}


def announced(world):
    """What the loop has put up on the board: replicas, time of the day and why."""
    found = [one for one in world.board.intents() if one.source == SOURCE]
    return [(one.replicas, format_rfc3339(one.due)[11:19], one.why) for one in found]


def run(story, loops=LOOPS):
    """Play a story, decide again from its records, and return the world."""
    world = play(story, loops, kinds=TIME_TABLE_KINDS)
    replay(world)
    return world


def test_the_next_window_is_announced_while_the_object_is_followed():
    """With the windows that are open then, within the bounds; withdrawn with a pause, and at the end."""

    async def story(world):
        later = cron("20 8 * * *", "40 8 * * *", 3)
        await add(world, HALF, MORNING, later, minReplicaCount=1, maxReplicaCount=4)
        async with world.running():
            await at(world, "08:09:00")
            assert announced(world) == [(4, "08:10:00", "ScaledObject web, triggers[1]")]
            await at(world, "08:11:00")
            assert announced(world) == [(4, "08:20:00", "ScaledObject web, triggers[2]")]
            await at(world, "08:21:00")
            assert announced(world) == []
            await at(world, "08:31:00")
            assert announced(world) == [(4, "08:10:00", "ScaledObject web, triggers[1]")]
            pause = {"metadata": {"annotations": {PAUSED_UP: "true"}}}
            await world.cluster.patch(SCALED_OBJECTS, "web", pause, namespace=HOME)
            await at(world, "08:33:00")
            assert announced(world) == []

    run(story)


def test_windows_that_open_soon_after_one_another_are_all_announced():
    """The second opens while the nodes of the first may still boot; one that asks for no more is not named."""

    async def story(world):
        more, fewer = cron("12 8 * * *", "30 8 * * *", 7), cron("15 8 * * *", "30 8 * * *", 2)
        await add(world, HALF, MORNING, more, fewer, minReplicaCount=1, maxReplicaCount=9)
        async with world.running():
            await at(world, "08:05:00")
            assert [one[:2] for one in announced(world)] == [(5, "08:10:00"), (7, "08:12:00")]

    run(story)


def test_cpu_alone_scales_as_an_hpa_does():
    """Pods at 100 % of their requests for a target of 50 % are doubled; the object is active, and no HPA is made."""

    async def story(world):
        world.usage.milli = 200
        await add(world, HALF, minReplicaCount=1, maxReplicaCount=10)
        async with world.running():
            assert await at(world, "08:02:00") == 4
            assert await said(world) == {"Ready": "ScaledObjectReady", "Active": "ScalerActive"}
            assert (await status(world))["resourceMetricNames"] == ["cpu"]
            assert (await world.cluster.list(HPAS)).items == []
        assert ("ScaledObject", "web", "SuccessfulRescale") in await world.events()

    run(story)


def test_a_window_beside_cpu_holds_its_size_and_opens_on_time():
    """The HPA goes to 5 within a sync period of the start, and the time-table loop says nothing of the object."""

    async def story(world):
        await add(world, HALF, MORNING, minReplicaCount=1, pollingInterval=600, cooldownPeriod=60)
        async with world.running():
            assert await at(world, "08:09:59") == 2
            assert announced(world) == [(5, "08:10:00", "ScaledObject web, triggers[1]")]
            assert (await said(world))["Active"] == "ScalerNotActive"
            assert await at(world, "08:10:01") >= 2
            assert (await said(world))["Active"] == "ScalerActive"
            assert await at(world, "08:10:40") == 5
            assert (await status(world))["externalMetricNames"] == ["s1-cron-UTC-108xxx-308xxx"]
            assert await at(world, "08:30:01") == 5
            assert (await said(world))["Active"] == "ScalerNotActive"
        events = (await world.cluster.list(EVENTS, namespace=HOME)).items
        assert [one.reason for one in events if one.type == "Warning"] == []
        records = [one for one in world.records.lines if one.loop == "schedules"]
        assert all(b"ScaledObject" not in bytes(one.commands) for one in records)

    run(story)


def test_a_window_beside_cpu_starts_from_none_and_ends_at_none():
    """Outside the window cpu keeps nothing running: after the cooldown the workload has no pods."""

    async def story(world):
        await add(world, HALF, MORNING, pollingInterval=10, cooldownPeriod=60)
        async with world.running():
            assert await at(world, "08:00:20") == 0
            assert await at(world, "08:09:59") == 0
            assert await at(world, "08:10:01") == 1
            assert await at(world, "08:30:30") > 0
            assert (await said(world))["Active"] == "ScalerCooldown"
            assert await at(world, "08:31:11") == 0
        messages = [one.message for one in (await world.cluster.list(EVENTS, namespace=HOME)).items]
        assert (
            "Scaled apps/v1.Deployment default/web from 0 to 1, triggered by s1-cron-UTC-108xxx-308xxx"
            in messages
        )

    run(story)


def test_where_the_time_table_loop_runs_alone_a_mixed_object_is_left_alone():
    """No size, no status and no event: the object is the other loop's."""

    async def story(world):
        await add(world, HALF, MORNING, minReplicaCount=1)
        async with world.running():
            assert await at(world, "08:12:00") == 2
            found = await world.cluster.get(SCALED_OBJECTS.untyped, "web", namespace=HOME)
            assert "conditions" not in found.get("status", {})
        assert await world.events() == set()

    run(story, ("schedules", "horizontal"))


def test_where_a_trigger_is_added_the_object_changes_its_loop():
    """A time table gets a trigger for cpu: from then on an HPA goes by both."""

    async def story(world):
        await add(world, MORNING, minReplicaCount=1)
        async with world.running():
            assert await at(world, "08:11:00") == 5
            triggers = {"spec": {"triggers": [MORNING, HALF]}}
            await world.cluster.patch(SCALED_OBJECTS, "web", triggers, namespace=HOME)
            await world.clock.sleep(minutes(2) + seconds(1))
            assert await world.replicas() == 5
            assert (await status(world))["hpaName"] == "keda-hpa-web"
            assert (await status(world))["resourceMetricNames"] == ["cpu"]

    run(story)


def test_one_bad_object_stops_no_other():
    """The trigger that cannot be read is named on its object; the one beside it is scaled."""

    async def story(world):
        world.usage.milli = 200
        await add(world, {**HALF, "metricType": "Value"}, name="bad")
        await add(world, HALF, cron("10 8 * * *", "30 8 * * *", 5, zone="Mars/Base"), name="nowhere")
        await add(world, HALF, minReplicaCount=1)
        async with world.running():
            assert await at(world, "08:02:00") == 4
            assert await said(world, "bad") == {
                "Ready": "ScaledObjectCheckFailed",
                "Active": "ScalerNotActive",
            }

    run(story)
