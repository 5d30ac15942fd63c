"""Events of the node controller: how often an object gets one, and that writing them delays no tick."""

from __future__ import annotations

import asyncio

from tests.nodes.live import play

from kubetide.objects.kinds import EVENTS
from kubetide.units.time import minutes, seconds


class SlowEvents:
    """A cluster on which each write of an event takes a fifth of a second, as at five requests a second."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def create(self, kind, body, **arguments):
        if kind is EVENTS:
            await asyncio.sleep(0.2)
        return await self._cluster.create(kind, body, **arguments)


def test_an_object_gets_one_event_of_a_reason_in_five_minutes():
    """As upstream a waiting pod gets its event now and then, not each tick; the status object gets one for each scale-up."""

    async def story(world):
        await world.deploy("huge", replicas=1, cpu="64")
        await world.after(minutes(2))
        for name in ("one", "two", "three"):
            await world.deploy(name, replicas=1, cpu="1500m")
            await world.after(seconds(30))
        found = (await world.cluster.list(EVENTS)).items
        assert [event.count for event in found if event.reason == "NotTriggerScaleUp"] == [1]
        await world.after(minutes(5))
        found = (await world.cluster.list(EVENTS)).items
        [again] = [event.count for event in found if event.reason == "NotTriggerScaleUp"]
        assert again > 20, "it counts those that were not written"
        assert len(await world.events("ScaledUpGroup")) == 6

    play(story)


def test_events_of_many_pods_delay_no_tick():
    """While events are written for a hundred pods that no group helps, the loop ticks on and buys for others."""

    async def story(world):
        await world.deploy("huge", replicas=100, cpu="64")
        await world.after(seconds(8))
        await world.deploy("web", replicas=1, cpu="1500m")
        await world.after(seconds(12))
        assert "Chosen" in {one.code for one in world.recorder.reasons}
        assert len(await world.events("NotTriggerScaleUp")) < 100
        await world.after(seconds(30))
        assert len(await world.events("NotTriggerScaleUp")) == 100

    play(story, wrap=SlowEvents)
