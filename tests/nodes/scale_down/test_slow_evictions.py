"""Evictions that take long, as with a slow webhook of the API server: the loop does not wait for all of them."""

from __future__ import annotations

from tests.nodes.live import SHORT, play, replayed

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.nodes.controller.act import Actor
from kubetide.nodes.decision import EvictPod
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes, parse_rfc3339, seconds

LARGE = GroupSpec(name="large", instance_type="m5.4xlarge", max_size=10)


class Slow(EmbeddedCluster):
    """An API server that takes two seconds for each eviction. No pod is there."""

    def __init__(self, clock):
        super().__init__(Store(), clock, seed=1)
        self._slow = clock

    async def evict(self, **asked):
        await self._slow.sleep(seconds(2))
        await super().evict(**asked)


def test_evictions_are_put_off_after_three_seconds():
    """The first ten are asked for at the same time in any case, ten more after two seconds, and no others after four."""

    async def main(clock):
        cluster = Slow(clock)
        actor = Actor(cluster, EmbeddedCloud(cluster, clock, seed=1, groups=()), clock)
        pods = [EvictPod("default", f"web-{at}", f"u{at}", "n1", grace_period_s=0) for at in range(24)]
        begun = clock.now()
        done = await actor.act(pods)
        assert [one.status for one in done.results] == ["ok"] * 20 + ["skipped"] * 4
        assert clock.now() - begun == seconds(4)

    run_virtual(main, start=parse_rfc3339("2026-01-01T00:00:00Z"))


def test_pods_get_nodes_while_a_node_is_drained_slowly():
    """Sixty evictions of ten seconds each take a minute; a pod that comes meanwhile is served before they have ended."""

    async def story(world):
        evict = world.cluster.evict
        accepted = []

        async def slow(**eviction):
            await world.after(seconds(10))
            await evict(**eviction)
            accepted.append(world.clock.now())

        world.cluster.evict = slow
        await world.deploy("small", replicas=300, cpu="20m")
        await world.after(minutes(4))
        assert len(world.nodes) == 2
        await world.scale("small", 80)
        for _ in range(600):
            await world.after(seconds(1))
            if accepted:
                break
        assert accepted
        before = len(await world.events("TriggeredScaleUp"))
        await world.deploy("large", replicas=1, cpu="15700m")
        # The ten that are under way when it comes end first.
        await world.after(seconds(22))
        assert len(accepted) < 60
        assert len(await world.events("TriggeredScaleUp")) > before
        await world.after(minutes(4))
        assert not world.controller.state.memory.scale_down.deletions

    assert replayed(play(story, groups=(LARGE,), **SHORT))
