"""--max-bulk-soft-taint-time: soft taints that are not begun in time are left for the next tick."""

from __future__ import annotations

from collections import Counter

from tests.nodes.live import START, World, play, replayed

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.controller.act import Actor
from kubetide.nodes.decision import AddTaint
from kubetide.nodes.facts.nodes import DELETION_CANDIDATE
from kubetide.objects.kinds import NODES
from kubetide.ports.cloud import Cloud
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds


class Slow:
    """A cluster that takes two seconds for each change of a node."""

    def __init__(self, inner, clock):
        self._inner, self._clock = inner, clock

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def replace(self, kind, body, **more):
        if kind.resource == NODES.resource:
            await self._clock.sleep(seconds(2))
        return await self._inner.replace(kind, body, **more)


class NoCloud(Cloud):
    """A cloud that is never called."""


def test_what_is_not_begun_in_time_is_skipped():
    """Ten changes are made at once; with three seconds and two for each, the third ten are not begun."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        names = [f"n{at:02d}" for at in range(25)]
        for name in names:
            await cluster.create(NODES, builders.node(name, cpu="1", memory="1Gi"))
        actor = Actor(Slow(cluster, clock), NoCloud(), clock)

        def taints(key):
            return [AddTaint(name, key, "1", "PreferNoSchedule") for name in names]

        soft = await actor.act(taints(DELETION_CANDIDATE), soft_taint_time=seconds(3))
        assert Counter(one.status for one in soft.results) == {"ok": 20, "skipped": 5}
        for others in (
            await actor.act(taints("other"), soft_taint_time=seconds(3)),
            await actor.act(taints(DELETION_CANDIDATE)),
        ):
            assert {one.status for one in others.results} == {"ok"}

    run_virtual(main, start=START)


def test_the_next_tick_goes_on():
    """The next tick makes the skipped changes, and the records name them: a replay has the same result."""
    clocks = []

    def slow(cluster):
        return Slow(cluster, clocks[0])

    async def story(world):
        await world.after(minutes(3))
        tainted = [
            node
            for node in world.informers["nodes"].objects.values()
            if any(one.key == DELETION_CANDIDATE for one in node.spec.taints or ())
        ]
        assert len(tainted) == 14

    def world_of(clock, groups, **settings):
        clocks.append(clock)
        return World(clock, groups, wrap=slow, **settings)

    groups = (GroupSpec(name="idle", instance_type="m5.large", max_size=20, initial=14),)
    world = play(
        story, groups, world_of=world_of, max_bulk_soft_taint_count=14, max_bulk_soft_taint_time=seconds(1)
    )
    outcomes = [
        bytes(one.outcomes) for one in world.recorder.records if b"PreferNoSchedule" in bytes(one.commands)
    ]
    assert b'"skipped"' in outcomes[0]
    assert b'"skipped"' not in outcomes[1]
    replayed(world)
