"""What is wrong with an ElasticWorkload: refused by its definition, or reported in its conditions."""

from __future__ import annotations

import pytest
from tests.elastic.running import HOME, HORIZONTAL, play

from kubetide.objects.kinds import ELASTIC_WORKLOADS
from kubetide.ports.errors import Invalid
from kubetide.units.time import minutes, seconds


def test_an_invalid_section_is_refused_by_field_and_stops_no_other_object():
    """A section that the definition accepts and an HPA refuses is named; the other object is followed."""
    pods = {
        "type": "Pods",
        "pods": {"metric": {"name": ""}, "target": {"type": "AverageValue", "averageValue": "1"}},
    }

    async def story(world):
        await world.add_deployment("good", 2)
        await world.add(horizontal={"maxReplicas": 2, "minReplicas": 3, "metrics": [pods]})
        await world.add("good", "good", horizontal=HORIZONTAL)
        world.usage.milli = 160
        async with world.running():
            await world.clock.sleep(minutes(2))
            status, reason, message = await world.accepted()
            assert (status, reason) == ("False", "InvalidSpec")
            assert "spec.horizontal.maxReplicas: Invalid value: 2" in message
            assert "spec.horizontal.metrics[0].pods.metric.name: Required value" in message
            assert await world.replicas("good") == 4
            assert await world.replicas("web") == 2

    play(story)


def test_problems_of_the_schedule_are_a_condition():
    """Each rule that is not followed is named with its place; those that can be are followed."""
    rules = [
        {"name": "bad", "at": "0 25 * * *", "replicas": 1},
        {"name": "good", "at": "1 8 * * *", "replicas": 5},
    ]

    async def story(world):
        await world.add(schedule={"rules": rules})
        async with world.running():
            await world.clock.sleep(minutes(3))
            assert await world.replicas() == 5
            by_type = {one.type: one for one in (await world.get()).status.conditions}
            assert by_type["ScheduleValid"].status == "False"
            assert "hour (field 2)" in by_type["ScheduleValid"].message
            fixed = {"spec": {"schedule": {"rules": rules[1:]}}}
            await world.cluster.patch(ELASTIC_WORKLOADS, "web", fixed, namespace=HOME)
            await world.clock.sleep(minutes(1))
            by_type = {one.type: one for one in (await world.get()).status.conditions}
            assert by_type["ScheduleValid"].status == "True"

    play(story)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"horizontal": {"minReplicas": 1}}, "spec.horizontal.maxReplicas: Required value"),
        ({"schedule": {"rules": [{"at": "0 8 * * *"}]}}, "spec.schedule.rules[0].name: Required value"),
        (
            {"horizontal": {**HORIZONTAL, "behavior": {"scaleUp": {"selectPolicy": "Most"}}}},
            "selectPolicy: Unsupported value",
        ),
    ],
)
def test_the_definition_refuses(sections, words):
    """An API server refuses what the schema can check, and names the field."""

    async def story(world):
        with pytest.raises(Invalid) as refused:
            await world.add(**sections)
        assert words in str(refused.value)

    play(story, ("elastic",))


def test_defaults_come_from_the_definition():
    """The mode of a forecast is calendar where none is written."""

    async def story(world):
        await world.add(horizontal=HORIZONTAL, forecast={})
        assert (await world.get()).spec.forecast.mode == "calendar"

    play(story, ("elastic",))


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({}, "spec: write at least one of horizontal, vertical and schedule"),
        ({"vertical": {}, "forecast": {}}, "spec.forecast: needs a horizontal section"),
        (
            {"horizontal": HORIZONTAL, "forecast": {"timeZone": "Mars/Base"}},
            'spec.forecast.timeZone: unknown time zone "Mars/Base"',
        ),
        (
            {"vertical": {"updatePolicy": {"minReplicas": 0}}},
            "spec.vertical.updatePolicy.minReplicas: Invalid value: 0",
        ),
    ],
)
def test_what_the_definition_cannot_check_is_a_condition(sections, words):
    """What an API server without CEL accepts, or no CEL rule can check, is reported on the object."""

    async def story(world):
        await world.add(**sections)
        async with world.running():
            await world.clock.sleep(seconds(30))
            status, reason, message = await world.accepted()
            assert (status, reason) == ("False", "InvalidSpec")
            assert words in message

    play(story, ("elastic",))
