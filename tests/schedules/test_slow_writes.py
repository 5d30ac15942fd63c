"""Requests of the time-table loop that the API server does not answer."""

from __future__ import annotations

import asyncio

import pytest
from tests.schedules.test_controller import REFERENCE, START, play

from kubetide.objects.kinds import CRON_HPAS, DEPLOYMENTS
from kubetide.ports.errors import Unavailable
from kubetide.schedules.core import ALGORITHM
from kubetide.testing import builders
from kubetide.units.time import hours, minutes, seconds


class Hang:
    """Requests for the scale, or the status, of these objects take so long; notes when they come, in seconds."""

    def __init__(self, clock, name, time, error=None, subresource="scale"):
        self.clock, self.name, self.time, self.error = clock, name, time, error
        self.subresource, self.came = subresource, []

    async def before(self, request):
        if request.verb == "get" or (request.name, request.subresource) != (self.name, self.subresource):
            return
        self.came.append((self.clock.now() - START - hours(7)) // seconds(1))
        await asyncio.sleep(self.time)
        if self.error:
            raise self.error


class Reading:
    """The scale of this object is read so slowly, as where a webhook that converts it hangs."""

    def __init__(self, name, time):
        self.name, self.time = name, time

    async def before(self, request):
        if (request.verb, request.name, request.subresource) == ("get", self.name, "scale"):
            await asyncio.sleep(self.time)


class Several:
    """Faults of several objects."""

    def __init__(self, faults):
        self.faults = faults

    async def before(self, request):
        for one in self.faults:
            await one.before(request)


async def add_table(world, name):
    """Add a Deployment that is to have six replicas at 08:00 in Berlin, seven hours after the start."""
    await world.cluster.create(DEPLOYMENTS, builders.deployment(name, replicas=1), namespace="default")
    jobs = [{"name": "up", "schedule": "0 0 8 * * *", "targetSize": 6}]
    await world.add(CRON_HPAS, name, scaleTargetRef={**REFERENCE, "name": name}, jobs=jobs)


async def replicas(world, name):
    return (await world.cluster.get(DEPLOYMENTS, name, namespace="default")).spec.replicas


@pytest.mark.parametrize("error", [None, Unavailable("too slow")])
def test_a_change_that_hangs_makes_no_other_late(error):
    """The other target has its size within seconds; no second write is sent meanwhile, and what came of the first is seen."""

    async def story(world):
        await add_table(world, "api")
        await add_table(world, "web")
        world.cluster.faults = hang = Hang(world.clock, "api", 40, error)
        await world.run(hours(7) + seconds(15))
        assert (await replicas(world, "api"), await replicas(world, "web")) == (1, 6)
        return hang

    async def whole(world):
        await add_table(world, "api")
        await add_table(world, "web")
        world.cluster.faults = hang = Hang(world.clock, "api", 40, error)
        running = asyncio.create_task(world.run(hours(8)))
        await world.clock.sleep(hours(7) + seconds(39))
        assert hang.came == [0]
        hang.time, hang.error = 0, None
        await world.clock.sleep(minutes(1))
        await running
        assert (await replicas(world, "api"), await replicas(world, "web")) == (6, 6)
        assert hang.came == [0, 42], "this kind of table writes the size once more, also where it is there"
        codes = [one.code for record in world.records.lines for one in record.reasons]
        assert "Pending" in codes
        assert "Refused" not in codes
        for name in ("api", "web"):
            [condition] = (await world.cluster.get(CRON_HPAS, name, namespace="default")).status.conditions
            assert condition.state == "Succeed"
        return world.records.lines

    play(story)
    core = ALGORITHM.core()
    for record in play(whole):
        core.apply(bytes(record.state), full=record.full)
        assert core.decide(record.now) == bytes(record.commands)
        assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)


def test_changes_that_hang_make_no_other_late():
    """Targets are changed side by side, so the last of six has its size at once although five hang."""

    async def story(world):
        hanging = ["a", "b", "c", "d", "e"]
        for name in (*hanging, "web"):
            await add_table(world, name)
        hangs = [Hang(world.clock, name, 40) for name in hanging]
        world.cluster.faults = Several(hangs)
        running = asyncio.create_task(world.run(hours(8)))
        await world.clock.sleep(hours(7) + seconds(1))
        assert await replicas(world, "web") == 6
        await world.clock.sleep(minutes(5))
        await running
        assert [await replicas(world, name) for name in hanging] == [6] * 5

    play(story)


def test_a_target_that_is_not_read_makes_no_other_late():
    """The other one has its size within ten seconds; the first when it can be read, and no try of it has failed."""

    async def story(world):
        await add_table(world, "api")
        await add_table(world, "web")
        world.cluster.faults = hang = Reading("api", 60)
        running = asyncio.create_task(world.run(hours(8)))
        await world.clock.sleep(hours(7) + seconds(11))
        assert (await replicas(world, "api"), await replicas(world, "web")) == (1, 6)
        hang.time = 0
        await world.clock.sleep(minutes(1))
        await running
        assert await replicas(world, "api") == 6
        codes = [one.code for record in world.records.lines for one in record.reasons]
        assert "Pending" in codes
        assert "Refused" not in codes

    play(story)


def test_a_status_that_hangs_makes_no_change_late():
    """Sizes follow the clock while a status cannot be written; the newest one is written in the end."""

    async def story(world):
        await add_table(world, "api")
        await add_table(world, "web")
        world.cluster.faults = Hang(world.clock, "api", 50, subresource="status")
        await world.run(hours(7) + seconds(10))
        assert (await replicas(world, "api"), await replicas(world, "web")) == (6, 6)
        assert world.loop.health.last_tick >= START + hours(7)

    async def later(world):
        await add_table(world, "api")
        world.cluster.faults = Hang(world.clock, "api", 50, subresource="status")
        await world.run(hours(8))
        [condition] = (await world.cluster.get(CRON_HPAS, "api", namespace="default")).status.conditions
        assert condition.state == "Succeed"

    play(story)
    play(later)
