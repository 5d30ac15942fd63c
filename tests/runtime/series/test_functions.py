"""The time of a tick's parts: each is reported as often as it ran, with the time that it waited."""

from __future__ import annotations

from tests.nodes.live import SHORT, START
from tests.runtime.series.scraped import Scraped, reported

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.controller.stopwatch import Stopwatch
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes, seconds

NAME = "function_duration_seconds"


def counts(world):
    return {key[1]: value for key, value in world.read().items() if key[0] == f"{NAME}_count"}


def sums(world):
    return {key[1]: value for key, value in world.read().items() if key[0] == f"{NAME}_sum"}


def test_each_part_is_counted_as_often_as_it_runs():
    """Once a tick what each tick does; parts of a scale-up and a scale-down when there is one."""
    groups = (
        GroupSpec(name="small", instance_type="m5.large", max_size=10),
        GroupSpec(name="large", instance_type="m5.xlarge", max_size=10),
    )

    async def story(world):
        await world.after(seconds(35))
        quiet = counts(world)
        ticks = quiet["main"]
        assert quiet == {
            "main": ticks,
            "cloudProviderRefresh": ticks,
            "updateClusterState": ticks,
            "findUnneeded": ticks,
            "loopWait": ticks - 1,
        }
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        grown = counts(world)
        assert grown["scaleUp"] == grown["scaleUp:buildPodEquivalenceGroups"] == 1
        assert grown["scaleUp:estimate"] == len(groups)
        assert grown["filterOutSchedulable"] > 1
        await world.scale("web", 0)
        await world.after(minutes(15))
        found = counts(world)
        chosen = [one for one in world.recorder.reasons if one.code == "EmptyNodeChosen"]
        assert chosen
        assert found["scaleDown"] >= 1
        assert found["findUnneeded"] == found["main"] == found["loopWait"] + 1

    reported(story, groups, **SHORT)


def test_asking_groups_that_are_left_out_is_a_part_of_its_own():
    """With the flag each attempt at a scale-up asks them once, where there are any; without it nothing is reported."""
    groups = (GroupSpec(name="small", instance_type="m5.large", max_size=1),)

    async def story(world):
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(minutes(5))
        assert "scaleUp:skippedNodeGroupsSimulation" not in counts(world)
        await world.deploy("more", replicas=1, cpu="1500m")
        await world.after(seconds(60))
        found = counts(world)
        simulated = found.get("scaleUp:skippedNodeGroupsSimulation", 0)
        asked.append((simulated, found["scaleUp:buildPodEquivalenceGroups"] - 1))

    asked = []
    reported(story, groups, scaleup_simulation_for_skipped_node_groups_enabled=True)
    reported(story, groups)
    (simulated, attempts), (without, others) = asked
    assert simulated == attempts > 0
    assert without == 0 < others


def test_a_part_takes_as_long_as_what_it_waits_for():
    """A slow cloud shows in the parts that ask it, and in the whole; its quantiles are of the last hour."""

    class Slow:
        def __init__(self, world):
            self.clock, self.cloud = world.clock, world.controller._gatherer._cloud
            self.gpu_label = self.cloud.gpu_label

        async def refresh(self):
            await self.clock.sleep(seconds(2))
            return await self.cloud.refresh()

    class SlowWorld(Scraped):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.controller._gatherer._cloud = Slow(self)

    async def story(world):
        await world.after(seconds(59))
        took, often = sums(world), counts(world)
        assert took["cloudProviderRefresh"] == took["updateClusterState"] == took["main"] == 2 * often["main"]
        assert took["loopWait"] == 8 * often["loopWait"]
        found = world.read()
        for quantile in ("0.5", "0.9", "0.99"):
            assert found["function_duration_quantile_seconds", "main", quantile] == 2
        assert found["function_duration_quantile_seconds_sum", "main"] == took["main"]
        assert found["function_duration_quantile_seconds_count", "main"] == often["main"]

    reported(story, world_of=SlowWorld)


def test_a_tick_that_fails_leaves_no_time_to_the_next():
    """Parts that had begun are forgotten; parts that had ended are not counted with the next tick."""

    async def main(clock):
        watch = Stopwatch(clock)
        watch.begin("loopWait")
        await clock.sleep(seconds(3))
        watch.restart()
        watch.begin("scaleUp")
        watch.begin("scaleUp:estimate")
        watch.end("scaleUp:estimate")
        watch.begin("loopWait")
        await clock.sleep(seconds(7))
        watch.restart()
        watch.end("scaleUp")
        return watch.take(), watch.take()

    assert run_virtual(main, start=START) == ([("loopWait", seconds(7))], [])


def test_a_groups_minimum_is_a_scale_up_of_its_own():
    """With the flag every tick tries, as upstream's."""

    async def story(world):
        await world.after(seconds(35))
        found = counts(world)
        assert found["scaleUp"] == found["main"]

    reported(story, enforce_node_group_min_size=True)
