"""Ticks that begin anew: after one that ended with a bug, and where the cloud reports another label of GPUs."""

from __future__ import annotations

from tests.nodes.live import SHORT, World, play, replayed

from kubetide.embedded.cloud import GroupSpec
from kubetide.objects.kinds import EVENTS, NODES
from kubetide.units.time import minutes


class Broken:
    """A cluster whose first write of an event fails as no API server does."""

    def __init__(self, cluster):
        self._cluster, self.failures = cluster, 0

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def create(self, kind, body, **arguments):
        if kind is EVENTS and body["reason"] == "NotUnderstood" and not self.failures:
            self.failures += 1
            raise RuntimeError("a bug")
        return await self._cluster.create(kind, body, **arguments)


def test_a_tick_after_a_bug_knows_everything_and_its_record_is_full():
    """Changes that the failed tick had taken from the caches are not lost, and the records replay from there."""

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        # Both changes reach the loop in the tick that fails between applying and deciding.
        odd = {"metadata": {"name": "odd"}, "status": {"capacity": {"memory": "1e30"}}}
        await world.cluster.create(NODES, odd)
        await world.scale("web", 4)
        await world.after(minutes(5))
        assert world.controller.health.bugs == 1
        assert "a bug" in world.controller.health.last_failure
        world.controller.health.failures = 0
        assert world.pending == []
        assert world.controller.not_understood == {"nodes": 1}
        await world.cluster.delete(NODES, "odd")
        await world.after(minutes(1))
        assert world.controller.not_understood == {"nodes": 0}

    world = play(story, wrap=Broken, full_every=10_000)
    assert [record.full for record in world.recorder.records].count(True) == 2
    assert replayed(world) > 20


def test_a_label_that_the_cloud_reports_late_counts_from_then_on():
    """A provider in another process may not answer at the start; what is known is made anew, and replays."""

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        world.cloud.gpu_label = "example.com/late"
        await world.after(minutes(1))
        assert world.controller.state.settings.gpu_label == "example.com/late"
        assert world.controller.health.bugs == 0
        assert world.pending == []

    world = play(story, full_every=10_000)
    assert [record.full for record in world.recorder.records].count(True) == 2
    assert replayed(world) > 20


class OneBadDelete(World):
    """A world whose cloud fails at the first of several deletions, as no cloud's adapter may."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.calls = 0
        delete = self.cloud.delete_nodes

        async def delete_nodes(group, provider_ids, **others):
            self.calls += 1
            if self.calls == 1:
                raise RuntimeError("an error that nobody wrapped")
            await delete(group, provider_ids, **others)

        self.cloud.delete_nodes = delete_nodes


def test_what_else_was_begun_is_absorbed_before_the_tick_fails():
    """Where one of several deletions ends with a bug, the results of the others are recorded and remembered."""
    groups = tuple(GroupSpec(name=f"g{at}", instance_type="m5.large", max_size=3) for at in range(3))

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(6))
        await world.scale("web", 0)
        await world.after(minutes(12))
        assert world.controller.health.bugs == 1
        world.controller.health.failures = 0
        assert world.nodes == []

    settings = {**SHORT, "expander": "random"}
    world = play(story, groups, world_of=OneBadDelete, full_every=10_000, **settings)
    failed = [
        record for record in world.recorder.records if b"an error that nobody" in bytes(record.outcomes)
    ]
    assert len(failed) == 1
    assert replayed(world) > 50
