"""Writes for ElasticWorkloads that the API server does not answer."""

from __future__ import annotations

import asyncio

from tests.elastic.running import HORIZONTAL, play, replay

from kubetide.objects.kinds import EVENTS
from kubetide.units.time import minutes, seconds


class Hang:
    """Writes of the status of ``api``, and all events, take so long."""

    def __init__(self, time):
        self.time = time

    async def before(self, request):
        if request.kind is EVENTS or (request.verb == "patch" and request.name == "api"):
            await asyncio.sleep(self.time)


def test_a_status_that_hangs_makes_no_other_late():
    """Another object that comes meanwhile is accepted within seconds; the first is when the answer comes."""

    async def story(world):
        await world.add_deployment("api", 1)
        world.cluster.faults = Hang(50)
        async with world.running():
            await world.add("api", "api", horizontal=HORIZONTAL)
            await world.clock.sleep(seconds(10))
            await world.add(horizontal=HORIZONTAL)
            await world.clock.sleep(seconds(10))
            assert (await world.accepted())[0] == "True"
            assert not (await world.get("api")).status.conditions
            world.cluster.faults = None
            await world.clock.sleep(minutes(3))
            assert (await world.accepted("api"))[0] == "True"

    replay(play(story, loops=("elastic",)))
