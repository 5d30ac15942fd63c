"""Writes that the API server does not answer: other HPAs are in time, and what comes late still counts."""

from __future__ import annotations

import asyncio

import msgspec
from tests.horizontal.running import START, check_replay, play

from kubetide.horizontal.explain.entry import EXPLAINING
from kubetide.objects.kinds import EVENTS, HPAS
from kubetide.ports.errors import Unavailable
from kubetide.units.time import format_rfc3339, minutes, seconds

WHY = "reason: cpu resource utilization (percentage of request) above target"
BY_TWO = {
    "spec": {
        "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}},
    }
}


class Hang:
    """Requests about these names, of this subresource, take so long; notes when they come, in seconds."""

    def __init__(self, clock, *names, subresource="scale", time=60.0, error=None, kind=""):
        self.clock, self.names, self.subresource, self.kind = clock, names, subresource, kind
        self.time, self.error, self.came = time, error, []

    async def before(self, request):
        if request.verb == "get" or request.subresource != self.subresource:
            return
        if self.kind and request.kind.kind != self.kind:
            return
        if not self.names or request.name in self.names:
            self.came.append((request.name, (self.clock.now() - START) / seconds(1)))
            await asyncio.sleep(self.time)
            if self.error:
                raise self.error


def at(seconds_after):
    return format_rfc3339(START + seconds(seconds_after))


def test_a_scale_write_that_hangs_makes_no_other_hpa_late():
    """The tick goes on after three seconds; the late success is told, dated, and counts for the rate limit."""

    async def story(world):
        world.usage.milli = 400
        for name in ("api", "web"):
            await world.add(name, extra=BY_TWO)
        world.cluster.faults = hang = Hang(world.clock, "api", time=20)
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await world.replicas("web") == 4
            await world.clock.sleep(seconds(3))
            assert (await world.hpa("web")).status.last_scale_time == at(15)
            [reason] = [
                one["fields"]["why"]
                for one in msgspec.json.decode(world.recorder.lines[-1])["reasons"]
                if one["code"] == "RescalePending"
            ]
            assert reason == "the API server has not answered the write yet"
            [explainer] = EXPLAINING.explainers
            outcomes = msgspec.json.decode(world.recorder.lines[-1])["outcomes"]
            said = explainer.why_not_changed(msgspec.json.encode(outcomes), "default/api")
            assert said == "It is not known to be written: the API server has not answered the write yet."
            await world.clock.sleep(seconds(14))  # a second tick meanwhile
            assert hang.came == [("api", 15)]
            await world.clock.sleep(seconds(15))
            assert await world.replicas("api") == 4
            assert (await world.hpa("api")).status.last_scale_time == at(35)
            assert await world.events() == [("SuccessfulRescale", f"New size: 4; {WHY}", 1)] * 2
            await world.clock.sleep(minutes(2))
            assert await world.replicas("api") == 4, "two pods in ten minutes are allowed"
            assert hang.came == [("api", 15)]
        return world.recorder.lines

    check_replay(play(story))


def test_a_scale_write_that_fails_late_is_tried_again():
    """Its error is told once it is known, and the next tick writes anew."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        world.cluster.faults = hang = Hang(world.clock, time=20, error=Unavailable("too slow"))
        async with world.running():
            await world.clock.sleep(seconds(44))
            assert [when for _, when in hang.came] == [15]
            await world.clock.sleep(seconds(5))
            [failed] = await world.events()
            assert failed[0] == "FailedRescale"
            assert "too slow" in failed[1]
            assert [when for _, when in hang.came] == [15, 45]
            hang.time, hang.error = 0, None
            await world.clock.sleep(seconds(60))
            assert await world.replicas() == 4
        return world.recorder.lines

    check_replay(play(story))


def test_a_deleted_hpa_has_no_late_outcome():
    """An HPA that has gone, and another of its name, has nothing of a write that ends afterwards."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        world.cluster.faults = Hang(world.clock, "web", time=20)
        async with world.running():
            await world.clock.sleep(seconds(20))
            old = await world.hpa()
            await world.cluster.delete(HPAS, "web", namespace="default")
            body = msgspec.to_builtins(old) | {"metadata": {"name": "web", "namespace": "default"}}
            body.pop("status", None)
            await world.cluster.create(HPAS, body, namespace="default")
            await world.clock.sleep(seconds(60))
            assert await world.events() == []
        return world.recorder.lines

    check_replay(play(story))


def test_a_status_write_that_hangs_holds_up_nothing():
    """Other statuses are in time; that of the HPA is written anew, as it is then."""

    async def story(world):
        world.usage.milli = 200
        for name in ("api", "web"):
            await world.add(name)
        world.cluster.faults = hang = Hang(
            world.clock, "api", subresource="status", kind="HorizontalPodAutoscaler", time=40
        )
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert (await world.hpa("web")).status.desired_replicas == 4
            world.usage.milli = 100
            await world.clock.sleep(seconds(15))
            assert (await world.hpa("web")).status.current_replicas == 4
            hang.time = 0
            await world.clock.sleep(seconds(60))
            assert hang.came[0] == ("api", 15)
            api, web = await world.hpa("api"), await world.hpa("web")
            assert api.status.desired_replicas == web.status.desired_replicas
            assert [c.reason for c in api.status.conditions] == [c.reason for c in web.status.conditions]
        return world.recorder.lines

    check_replay(play(story))


def test_an_event_that_hangs_holds_up_nothing():
    """Scaling goes on while no event can be written."""

    async def story(world):
        world.usage.milli = 200
        for name in ("api", "web"):
            await world.add(name)
        world.cluster.faults = Hang(world.clock, subresource="", kind="Event", time=59)
        async with world.running():
            await world.clock.sleep(seconds(31))
            assert (await world.hpa("web")).status.last_scale_time == at(15)
            assert world.controller.health.last_tick == START + seconds(30)
            await world.clock.sleep(minutes(3))
            assert len((await world.cluster.list(EVENTS)).items) == 2
        return world.recorder.lines

    check_replay(play(story))
