"""A loop that only advises observes the rate limits with the changes that others have made."""

from __future__ import annotations

from tests.horizontal.running import START, World

from kubetide.objects.kinds import DEPLOYMENTS, EVENTS
from kubetide.runtime.guard import Advice
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import before, format_rfc3339, seconds

BEHAVIOR = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 600}]}}


async def reported(world, size, ago, before_message=""):
    """An event of upstream's controller."""
    at = format_rfc3339(before(START, ago))
    body = {
        "metadata": {"name": f"web.{size}"},
        "involvedObject": {"kind": "HorizontalPodAutoscaler", "namespace": "default", "name": "web"},
        "type": "Normal",
        "reason": "SuccessfulRescale",
        "message": f"{before_message}New size: {size}; reason: cpu resource utilization (percentage of request) above target",
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    await world.cluster.create(EVENTS, body, namespace="default")


def advised(story):
    """Return to how many replicas each advice was."""

    async def main(clock):
        world = World(clock, guard=Advice(), advises=True)
        world.usage.milli = 2000
        await world.add(replicas=4, extra={"spec": {"behavior": BEHAVIOR}})
        await story(world)
        assert world.controller.health.bugs == 0, world.controller.health.last_failure
        return [one.verdict.desired for one in world.controller.result.settlements]

    return run_virtual(main, start=START)


def test_changes_before_the_start_count_by_their_events():
    """From 1 to 4 five minutes ago leaves one pod of four in ten minutes; without events all four are advised."""

    async def with_events(world):
        await reported(world, 1, seconds(900))
        await reported(world, 4, seconds(300))
        async with world.running():
            await world.clock.sleep(seconds(16))

    async def without(world):
        async with world.running():
            await world.clock.sleep(seconds(16))

    async def with_combined(world):
        await reported(world, 1, seconds(900))
        await reported(world, 4, seconds(300), before_message="(combined from similar events): ")
        async with world.running():
            await world.clock.sleep(seconds(16))

    assert advised(with_events) == advised(with_combined) == [5]
    assert advised(without) == [8]


def test_what_others_scale_meanwhile_counts_too():
    """Somebody follows half of the advice: the other half is left."""

    async def story(world):
        async with world.running():
            await world.clock.sleep(seconds(16))
            scale = {"spec": {"replicas": 6}}
            await world.cluster.patch(DEPLOYMENTS, "web", scale, namespace="default")
            await world.clock.sleep(seconds(30))

    assert advised(story) == [8]
