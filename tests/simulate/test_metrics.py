"""Runs that scale by custom and external metrics, from the load to the replicas."""

from __future__ import annotations

from math import ceil
from pathlib import Path

from kubetide.objects.kinds import HPAS
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.quantity import milli
from kubetide.units.time import before, hours, minutes

EXAMPLE = Path(__file__).parents[2] / "examples" / "queue-workers.yaml"


def at_the_end(name, length):
    """Return the world after that time, and the HPA of that name."""
    scenario = load_scenario(EXAMPLE)

    async def run(clock):
        end = start_of(scenario) + length
        world = World(scenario, clock, base=EXAMPLE.parent, end=end, seed=1, recorder=NullRecorder())
        await world.run()
        return world, await world.cluster.get(HPAS, name, namespace="default")

    return run_virtual(run, start=before(start_of(scenario), minutes(3)))


def test_pods_are_scaled_by_their_requests():
    """The status shows requests per pod and the queue of the Deployment, near the target."""
    world, hpa = at_the_end("storefront", minutes(20))
    pods, queue = hpa.status.current_metrics
    assert abs(milli(pods.pods.current.average_value) / 25_000 - 1) < 0.25
    assert queue.object.current.average_value == "0"
    offered = world.timeline.services["storefront"].offered[-1]
    assert hpa.status.current_replicas in {ceil(offered / 25), ceil(offered / 25) + 1}
    assert world.violations() == []


def test_workers_follow_two_queues():
    """Two series of one metric are read by their labels; the longer queue decides."""
    world, hpa = at_the_end("workers", hours(1))
    orders, mail = (metric.external for metric in hpa.status.current_metrics)
    assert orders.metric.selector.match_labels == {"queue": "orders"}
    # 50 to 65 orders for 30 a pod; mail is far below its target.
    assert hpa.status.desired_replicas in {2, 3, 4}
    assert milli(orders.current.average_value) <= 33_000
    assert milli(mail.current.average_value) < 20_000
    assert world.violations() == []
