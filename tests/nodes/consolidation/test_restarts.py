"""A node loop that is killed, or loses its lease, in the middle of a move of consolidation; the next one goes on."""

from __future__ import annotations

import pytest
from tests.nodes.live import START
from tests.nodes.test_restarts import Mortal

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.facts.nodes import CONSOLIDATION, OWN_TAINTS
from kubetide.objects.kinds import PODS
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds

OLD = GroupSpec(name="old", instance_type="m5.xlarge", max_size=6, initial=4, price_per_hour=0.4)
WIDE = GroupSpec(name="wide", instance_type="m5.4xlarge", max_size=3, price_per_hour=0.5)
KEPT = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
SETTINGS = {
    "consolidation_enabled": True,
    "consolidation_budgets": "nodes=50%",
    "expander": "least-cost",
    "max_drain_parallelism": 4,
    "recover_scale_ups": True,
    "scale_down_delay_after_add": minutes(38),
}


async def story(world):
    """Four nodes are replaced by one; it waits for a pod on one of them that nothing may evict."""
    await world.deploy("web", replicas=4, cpu="2500m")
    await world.after(minutes(30))
    job = builders.pod(
        "job",
        namespace="default",
        cpu="500m",
        extra={"metadata": {"annotations": KEPT}, "spec": {"restartPolicy": "Never"}},
    )
    await world.cluster.create(PODS, job, namespace="default")
    await world.after(minutes(12))
    tainted = [
        one.key for node in world.informers["nodes"].objects.values() for one in node.spec.taints or ()
    ]
    assert CONSOLIDATION in tainted
    await world.after(minutes(8))
    assert world.informers["pods"].objects[("default", "job")].metadata.deletion_timestamp is None
    await world.cluster.delete(PODS, "job", namespace="default")
    await world.after(minutes(40))
    [node] = world.informers["nodes"].objects.values()
    assert (world.pending, world.asked, world.cloud.counts()["wide"].running) == ([], 1, 1)
    assert not {one.key for one in node.spec.taints or ()} & {*OWN_TAINTS, CONSOLIDATION}
    assert not node.spec.unschedulable


def play(at, loses, rest):
    async def main(clock):
        world = Mortal(clock, at=at, loses=loses, rest=rest, groups=(OLD, WIDE), **SETTINGS)
        async with world.running():
            await story(world)
        return world

    return run_virtual(main, start=START)


WRITES = 140
"""More than the story has until its last old node is gone."""


def test_without_a_kill_the_story_has_fewer_writes():
    """The kills of the next test reach its end."""
    assert 100 < play(0, "after", seconds(1)).writes < 2 * WRITES


@pytest.mark.slow
@pytest.mark.parametrize("loses", ["before", "after", "lease"])
def test_killed_at_any_write_the_next_process_ends_the_move(loses):
    """Nothing is bought twice for a move, no taint stays, every pod has a place, and the pod that may not be evicted is not."""
    for at in range(31, WRITES, 4):
        try:
            play(at, loses, seconds(1 if at % 8 < 4 else 40))
        except (AssertionError, ValueError) as error:
            error.add_note(f"killed at write {at}")
            raise
