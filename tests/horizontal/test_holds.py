"""Nothing is scaled down on a cache of pods that may be incomplete."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import play

from kubetide.explain.records import Record
from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.decide import decide
from kubetide.horizontal.memory import MemoryEntry, Recommendation, ScaleEvents
from kubetide.horizontal.settings import Settings
from kubetide.objects.kinds import PODS
from kubetide.units.time import ZERO, before, minutes, seconds

LACKING = (
    "a new list of pods at 2026-03-02T08:00:21Z lacked 5 of 8 (62 %, max-relist-loss 20 %); nothing is taken away until "
    "2026-03-02T08:10:21Z"
)


async def lose(world, count):
    """Remove that many pods from the next list, without a watch event."""
    world.cluster.expire_watches()
    for index in range(count):
        await world.cluster.delete(PODS, f"web-{index}", namespace="default", grace_period_s=0)


def replay(lines):
    """Decide the records again; the bytes must be the same."""
    core = HorizontalCore()
    for line in lines:
        record = msgspec.json.decode(line, type=Record)
        core.apply(bytes(record.state), full=record.full)
        assert core.decide(record.now) == bytes(record.commands)
        assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)


def test_a_list_that_lost_many_pods_holds():
    """8 replicas, of which a list shows 3, stay 8 with a reason, and the hold ends by itself."""

    async def story(world):
        await world.add(replicas=8)
        async with world.running():
            await world.clock.sleep(seconds(20))
            await lose(world, 5)
            world.usage.milli = 120
            await world.clock.sleep(minutes(9))
            assert await world.replicas() == 8
            assert (await world.hpa()).status.desired_replicas == 8
            await world.clock.sleep(minutes(2))
            assert await world.replicas() == 4
        return world.recorder.lines

    lines = play(story)
    reasons = [one for line in lines for one in msgspec.json.decode(line, type=Record).reasons]
    held = next(one for one in reasons if one.code == "ScaleDownHeld")
    assert dict(held.fields) == {"current": 8, "proposed": 4, "why": LACKING}
    replay(lines)


def test_a_list_that_lost_a_few_does_not_hold():
    """One pod of eight is an ordinary change; the share is a setting."""

    async def story(world):
        await world.add(replicas=8)
        async with world.running():
            await world.clock.sleep(seconds(20))
            await lose(world, 1)
            world.usage.milli = 50
            await world.clock.sleep(minutes(7))
            return await world.replicas()

    assert play(story) == 4
    assert play(story, max_relist_loss=0.1) == 8


@pytest.mark.parametrize("columns_from", [0, 1 << 30])
@pytest.mark.parametrize(
    ("used", "desired", "held_back"), [(50, 10, 5), (200, 20, None), (400, 20, None), (100, 10, None)]
)
def test_a_hold_stops_the_way_down_only(columns_from, used, desired, held_back):
    """Scale-ups go on, both in the decision in columns and in that one by one."""
    pods = [worlds.pod(f"web-{index}", cpu=200) for index in range(10)]
    state = worlds.state_of(
        hpas=[worlds.hpa(target=50)],
        pods=pods,
        scales=[worlds.scale(replicas=10)],
        usage={("default", f"web-{index}"): used for index in range(10)},
        settings=Settings(downscale_stabilization=ZERO),
        # Recommendations of long ago hold nothing.
        memory=[
            MemoryEntry(
                "default", "web", [Recommendation(before(worlds.NOW, minutes(30)), 10)], ScaleEvents()
            )
        ],
    )
    without = decide(state, worlds.NOW, columns_from=columns_from).verdicts[0].desired
    assert without == (desired if held_back is None else held_back)
    state.holds = (LACKING,)
    commands = decide(state, worlds.NOW, columns_from=columns_from)
    [verdict] = commands.verdicts
    assert (verdict.desired, verdict.held_back) == (desired, held_back)
    assert [one.replicas for one in commands.writes] == ([desired] if desired != 10 else [])
