"""Statuses and checkpoints that the API server does not take."""

from __future__ import annotations

import asyncio

import pytest
from tests.vertical.recommender.live import story, vpa

from kubetide.objects.kinds import VPA_CHECKPOINTS, VPAS
from kubetide.units.time import minutes


class Hang:
    """Writes about one object take so long; counts them."""

    def __init__(self, kind, name, time):
        self.kind, self.name, self.time, self.came = kind, name, time, 0

    async def before(self, request):
        is_write = request.verb in {"patch", "update", "create"}
        if is_write and request.kind.kind == self.kind.kind and request.name == self.name:
            self.came += 1
            await asyncio.sleep(self.time)


@pytest.mark.parametrize(("kind", "name"), [(VPAS, "web"), (VPA_CHECKPOINTS, "web-app")])
def test_a_write_that_hangs_makes_no_pass_late(kind, name):
    """Of two VPAs the other has its recommendation and its checkpoint; no second write is sent meanwhile."""

    async def main(world):
        await world.begin(vpa(), vpa("wide"))
        world.cluster.faults = hang = Hang(kind, name, 200)
        await world.run_for(minutes(4.5))
        assert hang.came == 1
        assert world.clock.now() - world.controller.health.last_tick < minutes(1)
        assert (await world.target("wide"))["cpu"] == "442m"
        stored = await world.cluster.get(VPA_CHECKPOINTS, "wide-app", namespace="default")
        assert stored.status.total_samples_count == 4
        world.cluster.faults = None
        await world.run_for(minutes(2.5))
        assert (await world.target())["cpu"] == "442m"
        await world.cluster.get(VPA_CHECKPOINTS, "web-app", namespace="default")

    story(main)
