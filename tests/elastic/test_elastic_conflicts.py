"""ElasticWorkloads beside HPAs, VPAs and other ElasticWorkloads of the same target."""

from __future__ import annotations

import pytest
from tests.elastic.running import HOME, HORIZONTAL, WEB, play

from kubetide.objects.kinds import (
    ELASTIC_WORKLOADS,
    HPAS,
    VPAS,
)
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds


def test_beside_an_hpa_of_the_target_no_section_is_followed():
    """While an HPA scales the target, the sections do nothing; when it is deleted, they are followed."""

    async def story(world):
        world.usage.milli = 160
        await world.cluster.create(HPAS, builders.hpa("other", "web", max_replicas=3), namespace=HOME)
        await world.add(
            horizontal=HORIZONTAL, schedule={"rules": [{"name": "x", "at": "5 8 * * *", "minReplicas": 9}]}
        )
        async with world.running():
            await world.clock.sleep(minutes(10))
            status, reason, message = await world.accepted()
            assert (status, reason) == ("False", "Conflict")
            assert message.startswith("HorizontalPodAutoscaler other is in the way of Deployment web")
            assert await world.replicas() == 3
            assert (await world.get()).status.horizontal is None
            await world.cluster.delete(HPAS, "other", namespace=HOME)
            await world.clock.sleep(minutes(1))
            assert (await world.accepted())[0] == "True"
            assert await world.replicas() == 9
        assert ("ElasticWorkload", "web", "Conflict") in await world.events()

    play(story)


@pytest.mark.parametrize(
    ("kind", "sections", "follows"),
    [
        (HPAS, {"vertical": {}}, "True"),
        (HPAS, {"schedule": {"rules": [{"name": "x", "at": "5 8 * * *", "replicas": 9}]}}, "False"),
        (VPAS, {"vertical": {}}, "False"),
        (VPAS, {"horizontal": HORIZONTAL}, "True"),
    ],
)
def test_an_autoscaler_conflicts_only_with_sections_that_do_the_same(kind, sections, follows):
    """A VPA beside a horizontal section, or an HPA beside a vertical one, is no conflict."""

    async def story(world):
        if kind is HPAS:
            body = builders.hpa("other", "web")
        else:
            body = {"metadata": {"name": "other"}, "spec": {"targetRef": WEB}}
        await world.cluster.create(kind, body, namespace=HOME)
        await world.add(**sections)
        async with world.running():
            await world.clock.sleep(seconds(30))
            assert (await world.accepted())[0] == follows

    play(story, ("elastic",))


def test_of_two_for_one_target_the_older_is_followed():
    """The younger says so in its status, and takes over when the older is deleted."""

    async def story(world):
        await world.add("first", horizontal=HORIZONTAL)
        await world.clock.sleep(seconds(5))
        await world.add("second", horizontal=HORIZONTAL)
        async with world.running():
            await world.clock.sleep(seconds(30))
            assert (await world.accepted("first"))[0] == "True"
            assert "the older ElasticWorkload first is in the way" in (await world.accepted("second"))[2]
            await world.cluster.delete(ELASTIC_WORKLOADS, "first", namespace=HOME)
            await world.clock.sleep(seconds(30))
            assert (await world.accepted("second"))[0] == "True"

    play(story, ("elastic",))
