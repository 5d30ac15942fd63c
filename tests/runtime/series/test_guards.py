"""The guards' actions are counted: sources that fail or hang, holds, records that were lost."""

from __future__ import annotations

from tests.horizontal.running import play
from tests.runtime.series.reading import read

from kubetide.horizontal.series import show_sources
from kubetide.loop import loop_entry
from kubetide.loop.runner import Runner
from kubetide.loop.wiring import RunningLoop
from kubetide.objects.kinds import PODS
from kubetide.runtime.series import show_dropped, show_holds
from kubetide.units.exposition import Registry
from kubetide.units.time import minutes, seconds


def test_a_source_with_a_bug_and_one_that_hangs():
    """Each is counted under its own name; one that is left alone says so until it answers again."""

    async def story(world):
        registry = Registry()
        show_sources(registry, world.controller)
        found = lambda: read(registry, "kubetide_metric_source_")  # noqa: E731

        async def broken(*_about, **_more):
            raise KeyError("a bug")

        async def silent(*_about, **_more):
            await world.clock.sleep(minutes(60))

        answering = world.usage.pod_samples
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(20))
            name = next(key[1] for key in found() if key[0] == "failures_total")
            names = {key[1] for key in found()}
            assert set(found().values()) == {0}
            world.usage.pod_samples = broken
            await world.clock.sleep(seconds(60))
            failed = {key[1]: count for key, count in found().items() if key[0] == "failures_total" and count}
            assert len(failed) == 1
            [name] = failed
            assert failed[name] >= 3
            world.usage.pod_samples = silent
            await world.clock.sleep(minutes(2))
            alone = {key[1] for key, count in found().items() if key[0] == "left_alone" and count}
            assert alone == {name} <= names
            world.usage.pod_samples = answering
            await world.clock.sleep(minutes(3))
            assert found()["left_alone", name] == 0
            assert found()["failures_total", name] == failed[name]

    play(story)


def test_holds_of_the_last_tick_are_counted():
    """Pods that are lost by a new list hold scale-downs; the number goes back when that is long ago."""

    async def story(world):
        registry = Registry()
        loop = world.controller
        show_holds(registry, [RunningLoop(loop_entry(loop.name), loop, Runner(loop, world.clock))])
        found = lambda: read(registry, "kubetide_scale_down_")["holds", "horizontal"]  # noqa: E731
        await world.add(replicas=5)
        async with world.running():
            await world.clock.sleep(seconds(20))
            assert found() == 0
            world.cluster.expire_watches()
            for number in range(1, 5):
                await world.cluster.delete(PODS, f"web-{number}", namespace="default", grace_period_s=0)
            world.cluster.expire_watches()
            await world.clock.sleep(seconds(20))
            assert found() == 1
            await world.clock.sleep(minutes(11))
            assert found() == 0

    play(story)


def test_records_that_were_lost_are_counted():
    """As the writer counts them."""
    registry, lost = Registry(), [0]
    show_dropped(registry, lambda: lost[0])
    assert read(registry)["kubetide_records_dropped_total",] == 0
    lost[0] = 3
    assert read(registry)["kubetide_records_dropped_total",] == 3
