"""Evictions and resizes that the API server does not answer."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.vertical.pods_world import START, play

from kubetide.explain.records import Record
from kubetide.objects.kinds import EVENTS
from kubetide.ports.errors import Forbidden, Unavailable
from kubetide.units.time import minutes, seconds
from kubetide.vertical.annotations import boost_annotation
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.updater.core import UpdaterCore


class Hang:
    """Requests for a subresource of a pod take so long, and then fail where there is an error; notes when they come."""

    def __init__(self, clock, subresource, times, error=None):
        self.clock, self.subresource, self.times, self.error = clock, subresource, times, error
        self.came = []

    async def before(self, request):
        if request.subresource != self.subresource:
            return
        self.came.append((request.name, (self.clock.now() - START) // seconds(1)))
        time = self.times.pop(request.name, 0)
        await asyncio.sleep(time)
        if time and self.error:
            raise self.error


class SlowEvents:
    """Each event takes half a minute."""

    async def before(self, request):
        if request.verb == "create" and request.kind is EVENTS:
            await asyncio.sleep(30)


def replays(records):
    """Play the records again; assert that the same comes out."""
    core = UpdaterCore()
    for line in records:
        record = msgspec.json.decode(line, type=Record)
        core.apply(bytes(record.state), full=record.full)
        assert core.decide(record.now) == bytes(record.commands)
        assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)


def codes(records):
    return [
        (reason.code, reason.subject.rpartition("/")[2])
        for line in records
        for reason in msgspec.json.decode(line, type=Record).reasons
    ]


def evicted(events):
    return [name for reason, name in events if reason == "EvictedByVPA"]


def test_an_eviction_that_hangs_counts_as_made_and_holds_no_other_up():
    """Of four pods two may be down: the second goes three seconds later, and no third, nor the first again, meanwhile."""

    async def story(world):
        await world.build(4)
        world.cluster.faults = hang = Hang(world.clock, "eviction", {"web-0": 100})
        async with world.running():
            await world.clock.sleep(minutes(2) + seconds(30))
            early = await world.requests(), await world.events(), list(hang.came)
            await world.clock.sleep(minutes(1))
            return early, hang.came, await world.requests(), await world.events(), world.recorder.lines

    (left, events, early), came, left_then, events_then, records = play(story)
    assert [name for name, _ in early] == ["web-0", "web-1"]
    assert early[1][1] - early[0][1] == 3
    assert (list(left), evicted(events)) == (["web-0", "web-2", "web-3"], ["web-1"])
    assert ("Unanswered", "web-0") in codes(records)
    assert came == early
    assert (list(left_then), evicted(events_then)) == (["web-2", "web-3"], ["web-0", "web-1"])
    replays(records)


def test_an_eviction_without_an_answer_counts_against_the_budget():
    """It may have been made: the other of two pods waits for the next loop, in which the caches show what came of it."""

    async def story(world):
        await world.build(2)
        world.cluster.faults = hang = Hang(world.clock, "eviction", {"web-0": 1}, Unavailable("broken off"))
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(30))
            early = [name for name, _ in hang.came]
            await world.clock.sleep(minutes(1))
            return early, [name for name, _ in hang.came], await world.events()

    early, came, events = play(story)
    assert early == ["web-0"]
    assert came == ["web-0", "web-0"]
    assert evicted(events) == ["web-0"]


def test_an_eviction_that_is_refused_late_lets_the_next_loop_go_on():
    """What has come of it is said as of any other, and its budget is free again."""

    async def story(world):
        await world.build(2)
        refusal = Forbidden("not by this webhook")
        world.cluster.faults = hang = Hang(world.clock, "eviction", {"web-0": 30}, refusal)
        async with world.running():
            await world.clock.sleep(minutes(2) + seconds(30))
            return [name for name, _ in hang.came], await world.events(), world.recorder.lines

    came, events, records = play(story)
    assert came == ["web-0", "web-0"]
    assert evicted(events) == ["web-0"]
    assert ("EvictionFailed", "web-0") in codes(records)
    replays(records)


@pytest.mark.parametrize("error", [None, Forbidden("not by this webhook")])
def test_a_resize_that_hangs_makes_no_other_late(error):
    """The other pod has its resources at once; the first is resized when the answer comes, or evicted if it is a refusal."""

    async def story(world):
        await world.build(4, mode="InPlaceOrRecreate")
        world.cluster.faults = hang = Hang(world.clock, "resize", {"web-0": 100}, error)
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(10))
            early = await world.requests()
            await world.clock.sleep(minutes(3))
            return early, await world.requests(), await world.events(), hang.came, world.recorder.lines

    early, late, events, came, records = play(story)
    assert [early[name]["cpu"] for name in ("web-0", "web-1")] == ["100m", "500m"]
    assert [name for name, _ in came].count("web-0") == 1
    assert evicted(events) == (["web-0"] if error else [])
    assert {one["cpu"] for one in late.values()} == {"500m"}
    replays(records)


def test_the_end_of_a_boost_that_hangs_is_asked_for_once():
    """The loops that look for boosts that are over wait for its answer."""
    boost = {"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 70}}
    original = '{"requests":{"cpu":"100m","memory":"100Mi"},"limits":{}}'

    async def story(world):
        await world.build(1, mode="Off", startupBoost=boost)
        note = {boost_annotation("main"): original}
        await world.add_pod("web-9", annotations=note, cpu="300m")
        world.cluster.faults = hang = Hang(world.clock, "resize", {"web-9": 50})
        async with world.running():
            await world.clock.sleep(minutes(3))
            pod = await world.pod("web-9")
            return hang.came, pod.spec.containers[0].resources.requests["cpu"], world.recorder.lines

    came, cpu, records = play(story, gates=FeatureGates(cpu_startup_boost=True))
    assert [name for name, _ in came] == ["web-9"]
    assert cpu == "100m"
    assert ("Unanswered", "web-9") in codes(records)
    assert ("Unboosted", "web-9") in codes(records)
    replays(records)


def test_an_event_that_hangs_holds_up_no_eviction():
    """Events are written beside the loop."""

    async def story(world):
        await world.build(4)
        world.cluster.faults = SlowEvents()
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(10))
            return list(await world.requests())

    assert play(story) == ["web-2", "web-3"]
