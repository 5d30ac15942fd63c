"""The updater on an embedded cluster whose kubelets resize pods in place."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.vertical.pods_world import play, recommendation

from kubetide.explain.records import Record
from kubetide.objects.pod import pod_condition
from kubetide.runtime.guard import Advice
from kubetide.units.time import minutes, seconds
from kubetide.vertical.annotations import boost_annotation
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.reasons import VOCABULARY


def decided_again(records):
    """Return the core that decided these records again, each to the same bytes."""
    core = UpdaterCore()
    for record in records:
        core.apply(bytes(record.state), full=record.full)
        assert core.decide(record.now) == bytes(record.commands)
        assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)
    return core


def test_pods_outside_of_the_bounds_are_evicted_one_at_a_time():
    """Two replicas may have one down: one pod is evicted, and both it and its VPA get an event."""

    async def story(world):
        await world.build(2)
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(40))
            return await world.requests(), await world.events()

    left, events = play(story)
    assert list(left) == ["web-1"]
    assert ("EvictedByVPA", "web-0") in events
    assert ("EvictedPod", "web") in events


def test_an_event_comes_with_its_eviction():
    """Not at the end of the loop, which waits for the rate limit to let the next pod go."""

    async def story(world):
        await world.build(4)
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(5))
            early = await world.events()
            await world.clock.sleep(seconds(40))
            return early, await world.events()

    early, late = play(story, eviction_rate_limit=0.05)
    evicted = [[name for reason, name in found if reason == "EvictedByVPA"] for found in (early, late)]
    assert evicted == [["web-0"], ["web-0", "web-1"]]


def test_a_resize_in_place_reaches_the_container():
    """The pod goes on running, is marked, and its kubelet gives it the recommended resources."""

    async def story(world):
        await world.build(2, mode="InPlaceOrRecreate")
        async with world.running():
            await world.clock.sleep(minutes(4))
            pod = await world.pod("web-0")
            return await world.requests(), pod, await world.events()

    requests, pod, events = play(story)
    assert requests == {name: {"cpu": "500m", "memory": "500Mi"} for name in ("web-0", "web-1")}
    assert pod.metadata.annotations["vpaInPlaceUpdated"] == "true"
    assert pod.status.container_statuses[0].resources.requests["cpu"] == "500m"
    assert pod_condition(pod, "PodResizeInProgress") is None
    assert ("InPlaceResizedByVPA", "web-0") in events


def test_a_resize_without_capacity_becomes_an_eviction_after_five_minutes():
    """A deferred resize is waited for from the loop that sees it first, and then given up."""

    async def story(world):
        await world.build(2, mode="InPlaceOrRecreate", node_cpu="1500m")
        async with world.running():
            await world.recommend(cpu="1300m", lower="1200m", upper="1400m")
            await world.clock.sleep(minutes(3))
            early = await world.requests()
            await world.clock.sleep(minutes(7))
            return early, await world.requests(), await world.events()

    early, late, events = play(story)
    assert len(early) == 2
    assert len(late) == 1
    assert [reason for reason, _ in events if reason == "EvictedByVPA"] == ["EvictedByVPA"]


def test_nothing_is_done_without_the_admission_controllers_lease():
    """Evicted pods would come back as they were."""

    async def story(world):
        await world.build(2, lease=False)
        async with world.running(lease=False):
            await world.clock.sleep(minutes(5))
            return await world.requests(), world.updater.result

    left, result = play(story)
    assert len(left) == 2
    assert result.skipped == "error"
    assert [reason.code for reason in result.reasons] == ["AdmissionStatusMissing"]


def test_a_lease_that_stays_away_is_told_once():
    """Not in the first loop, as the admission controller may begin later; and anew after it was there."""

    async def story(world):
        await world.build(2, mode="InPlaceOrRecreate", lease=False)
        async with world.running(lease=False):
            told = []
            for lease, lasting in ((False, 1.5), (False, 3), (True, 1), (False, 4)):
                if lease:
                    await world.renew_lease(create=True)
                await world.clock.sleep(minutes(lasting))
                told.append(list(world.warnings))
            return told

    first, missing, back, stale = play(story)
    assert (first, missing, back) == ([], missing[:1], missing)
    assert missing[0].startswith(
        "updater: the admission controller has no lease, evicted pods would come back unchanged"
    )
    assert missing[0].endswith("start the admission controller (the loop admission, with --act)")
    assert stale[0] == missing[0]
    assert stale[1].startswith("updater: the admission controller's lease is too old")
    assert len(stale) == 2


def test_a_run_that_only_advises_changes_nothing():
    """Commands are decided and withheld: no pod is evicted, no event reports one, and the log says what would be done."""

    async def story(world):
        await world.build(2)
        async with world.running():
            await world.clock.sleep(minutes(3))
            return await world.requests(), await world.events(), world.updater.result

    left, events, result = play(story, Advice())
    assert len(left) == 2
    assert events == []
    advised = [one for one in result.reasons if one.code == "EvictionAdvised"]
    assert [VOCABULARY.text(one) for one in advised] == ["default/web-0: the pod would be evicted"]
    assert all(VOCABULARY.is_fruitless(one) for one in advised)


@pytest.mark.parametrize("mode", ["InPlaceOrRecreate", "InPlace"])
def test_resizes_are_advised_too(mode):
    """In the modes that resize in place."""

    async def story(world):
        await world.build(2, mode=mode)
        async with world.running():
            await world.clock.sleep(minutes(3))
            return await world.requests(), world.updater.result

    left, result = play(story, Advice(), gates=FeatureGates(in_place=True))
    assert {requests["cpu"] for requests in left.values()} == {"100m"}
    assert "ResizeAdvised" in {reason.code for reason in result.reasons}


def test_advice_goes_on_from_advice():
    """Statuses and the lease that this process would write if it acted stand in for those that nobody writes."""

    async def story(world):
        status = {
            "recommendation": {"containerRecommendations": [recommendation("900m", lower="800m", upper="1")]}
        }
        world.board.advises_admission = True
        await world.build(2, lease=False)
        said = []
        async with world.running(lease=False):
            for advised in ({}, {("default", "web"): json.dumps(status).encode()}, {}):
                world.board.advised_statuses = advised
                await world.clock.sleep(minutes(1.5))
                said.append(
                    {one.fields["detail"] for one in world.updater.result.reasons if one.code == "Queued"}
                )
        assert await world.events() == []
        return said, world.recorder.lines

    (stored, advised, again), lines = play(story, Advice())
    assert all("main cpu from 100m to 500m" in detail for detail in stored)
    assert all("main cpu from 100m to 900m" in detail for detail in advised)
    assert stored
    assert advised
    assert again == stored
    decided_again([msgspec.json.decode(line, type=Record) for line in lines])


def test_a_start_up_boost_ends_when_its_time_is_up():
    """The annotation is removed between two loops, about when the pod has been ready for its boost's time."""
    original = '{"requests":{"cpu":"100m","memory":"100Mi"},"limits":{}}'
    boost = {"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 130}}

    async def story(world):
        await world.build(1, mode="Off", startupBoost=boost)
        note = {boost_annotation("main"): original}
        await world.add_pod("web-9", annotations=note, cpu="300m")
        async with world.running():
            # The pods have been ready for somewhat less than a minute when the updater starts.
            await world.clock.sleep(seconds(50))
            early = (await world.requests())["web-9"]
            await world.clock.sleep(seconds(50))
            pod = await world.pod("web-9")
            return early, (await world.requests())["web-9"], pod.metadata.annotations

    early, late, annotations = play(story, gates=FeatureGates(cpu_startup_boost=True), min_replicas=1)
    assert early["cpu"] == "300m"
    assert late["cpu"] == "100m"
    assert annotations == {"vpaInPlaceUpdated": "true"}


def test_records_are_decided_again_to_the_same_bytes():
    """A replay gives each recorded command and event, and the same memory."""

    async def story(world):
        await world.build(3, mode="InPlaceOrRecreate")
        async with world.running():
            await world.clock.sleep(minutes(7))
            return world.recorder.lines, world.updater.state.dump()

    lines, final = play(story, eviction_tolerance=1.0)
    records = [msgspec.json.decode(line, type=Record) for line in lines]
    assert {record.phase for record in records} > {0}
    core = decided_again(records)
    assert core.state.memory == final.memory
