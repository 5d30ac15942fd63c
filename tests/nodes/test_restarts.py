"""A node loop that is killed, or loses its lease, in the middle of a scale-up or of a drain; the next one goes on."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from tests.nodes import frozen, live
from tests.nodes.frozen import World, group, pods
from tests.nodes.live import SHORT, SMALL, START, MemoryRecorder

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.decision import DecreaseTarget
from kubetide.nodes.facts.nodes import NOMINATION_TAINT, OWN_TAINTS
from kubetide.objects.kinds import PODS
from kubetide.objects.node import Taint
from kubetide.ports.cloud import Instance
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds

RECOVERING = {"recover_scale_ups": True}
ZONE_B = {"nodeSelector": {"topology.kubernetes.io/zone": "zone-b"}}
HELD = dataclasses.replace(
    SMALL, zones=("zone-b",), taints=(Taint(key=NOMINATION_TAINT, effect="NoSchedule"),)
)
CREATED = GroupSpec(name="auto-m5-2xlarge-zone-a", instance_type="m5.2xlarge", max_size=5)
WRITES = 100
"""More than a run of the story has until its last node is gone."""


def ordered(*, nodes=(), target=3, **settings):
    """Return the world of a fresh process: three machines of a group were asked for, of which some have a node."""
    names = [one.metadata.name for one in nodes]
    machine = Instance(provider_id="cloud:///a-9")
    known = group("a", nodes=names, instances=(machine,), target=target)
    waiting = pods("web", target, cpu="3")
    return World(nodes=nodes, groups=[known], pods=waiting, settings=settings)


def starting(name):
    return frozen.node(name, ready=False, created=frozen.format_rfc3339(START))


@pytest.mark.parametrize(("settings", "bought"), [(RECOVERING, {}), ({}, {"a": 2})])
def test_machines_on_their_way_at_the_start_are_not_bought_again(settings, bought):
    """Machines without a node, orders without a machine, and nodes that have not started count; without the flag only the latter do, as upstream."""
    assert ordered(nodes=[starting("a-1")], **settings).increases() == bought


def test_a_group_that_cannot_be_read_at_the_start_is_recovered_when_it_can():
    """A throttled first answer hides how many machines were asked for: they are not bought again."""
    world = ordered(nodes=[starting("a-1")], **RECOVERING)
    known = world.groups["a"]
    world.change("a", stale="throttled", max_size=0, target_size=0, instances=None)
    assert world.increases() == {}
    world.groups["a"] = known
    assert world.increases(at=seconds(10)) == {}
    assert [one.fields["nodes"] for one in world.reasons if one.code == "ScaleUpRecovered"] == [3]
    assert world.state.memory.unrecovered == ()


def test_what_an_earlier_process_asked_for_times_out_as_any_other_request():
    """The target is lowered, and the time since this process began teaches nothing about how long nodes take."""
    world = ordered(**RECOVERING)
    world.tick()
    assert [one.fields["nodes"] for one in world.reasons if one.code == "ScaleUpRecovered"] == [3]
    actions = world.tick(at=minutes(15) + seconds(10))
    assert DecreaseTarget("a", 3, "timeout") in actions
    world = ordered(target=1, **RECOVERING)
    world.tick()
    world.tick(at=seconds(60), nodes=(frozen.node("a-9"),))
    memory = world.state.memory
    assert (memory.scale_up_requests, memory.join_times) == ({}, {})


class Mortal(live.World):
    """A world whose node loop is killed at one of its writes; a fresh process begins after a while.

    ``loses`` says how: at the write, which is refused, or just after it; or the lease is lost, and the loop goes on for 2 s.
    """

    def __init__(self, clock, *, at, loses, rest, **kwargs):
        self.at, self.loses, self.rest = at, loses, rest
        self.writes, self.may_write = 0, True
        self.asked = 0
        super().__init__(clock, guard=self, **kwargs)
        increase = self.cloud.increase_size

        async def counted(group_id, delta):
            self.asked += delta
            await increase(group_id, delta)

        self.cloud.increase_size = counted

    def refusal(self):
        if not self.may_write:
            return "the lease was lost"
        self.writes += 1
        if self.writes != self.at:
            return ""
        loop = asyncio.get_running_loop()
        if self.loses == "after":
            loop.call_soon(self._end)
            return ""
        self.may_write = False
        loop.call_later(2 if self.loses == "lease" else 0, self._end)
        return "the lease was lost"

    def _end(self):
        self.may_write = False
        self._task.cancel()

    async def run_loop(self):
        while True:
            self._task = asyncio.ensure_future(super().run_loop())
            try:
                await self._task
            except asyncio.CancelledError:
                if self.may_write or not self._task.cancelled():
                    self._task.cancel()
                    raise
            assert self.controller.health.failures == 0, self.controller.health.last_failure
            await self.clock.sleep(self.rest)
            self.may_write, self.recorder = True, MemoryRecorder(50)
            self.begin_process(self)


async def story(world):
    """Pods come for a group of closed nodes and for one that is created, and go again, but for two."""
    selects = {"spec": {"template": {"spec": ZONE_B}}}
    naked = builders.pod("naked", namespace="default", cpu="1500m", extra={"spec": ZONE_B})
    await world.deploy("web", replicas=3, cpu="1500m", extra=selects)
    await world.cluster.create(PODS, naked, namespace="default")
    await world.deploy("wide", replicas=2, cpu="7")
    await world.after(minutes(7))
    assert (world.pending, world.asked) == ([], 6)
    await world.scale("web", 1)
    await world.scale("wide", 0)
    await world.after(minutes(25))
    assert (world.pending, world.asked, len(world.nodes)) == ([], 6, 2)
    assert sorted(world.cloud.counts()) == ["small"]
    for node in world.informers["nodes"].objects.values():
        hard = {one.key for one in node.spec.taints or () if one.effect == "NoSchedule"}
        assert not hard & {*OWN_TAINTS, NOMINATION_TAINT}
        assert not node.spec.unschedulable
    kept = world.informers["pods"].objects[("default", "naked")]
    assert kept.metadata.deletion_timestamp is None


def play(at, loses, rest):
    async def main(clock):
        world = Mortal(
            clock,
            at=at,
            loses=loses,
            rest=rest,
            groups=(HELD,),
            creatable=(CREATED,),
            prompt_scale_up=True,
            node_autoprovisioning_enabled=True,
            **RECOVERING,
            **SHORT,
        )
        async with world.running():
            await story(world)
        return world

    return run_virtual(main, start=START)


def test_a_story_without_a_kill_has_fewer_writes():
    """The kills of the next test reach the end of the story."""
    assert 60 < play(0, "after", seconds(1)).writes < 2 * WRITES


@pytest.mark.slow
@pytest.mark.parametrize("rest", [seconds(1), seconds(40)], ids=["soon", "later"])
@pytest.mark.parametrize("loses", ["before", "after", "lease"])
def test_killed_at_any_write_the_next_process_goes_on(loses, rest):
    """At every other write: nothing is bought twice, no taint or cordon stays, no created group is left, and a pod without a controller is not evicted."""
    for at in range(1 if rest == seconds(1) else 2, WRITES + 1, 2):
        try:
            play(at, loses, rest)
        except AssertionError as error:
            error.add_note(f"killed at write {at}")
            raise
