"""When kube-scheduler tries a refused pod again: our queue says the same of a pod that backs off."""

from __future__ import annotations

import pytest

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import pod_condition
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import milliseconds, to_seconds

pytestmark = pytest.mark.slow

CLOSED = [{"key": "closed", "effect": "NoSchedule"}]
REFUSALS = 6
"""After so many the back-off is at its most, 10 s."""


def test_a_pod_that_backs_off_is_bound_as_soon_as_a_node_takes_it(patient):
    """Six nodes come that would hold it and are closed to it: it backs off for 10 s, and is on the seventh, open one at once."""

    async def main(clock):
        async with HttpCluster(patient.connection, clock) as cluster:

            async def refusals():
                pod = await cluster.get(PODS, "waits", namespace="default")
                scheduled = pod_condition(pod, "PodScheduled")
                return pod, "" if scheduled is None else scheduled.message or ""

            async def until(holds):
                for _ in range(600):
                    if holds(await refusals()):
                        return
                    await clock.sleep(milliseconds(50))
                pytest.fail(f"waited in vain: {await refusals()}")

            # As a node is too small for it, each larger one makes it be tried.
            await add_node(cluster, "small", cpu="1")
            await cluster.create(PODS, builders.pod("waits", cpu="2"), namespace="default")
            await until(lambda found: "Insufficient cpu" in found[1])
            for number in range(1, REFUSALS + 1):
                await add_node(cluster, f"closed-{number}", CLOSED)
                await until(lambda found, number=number: f"0/{number + 1} nodes" in found[1])
            began = clock.now()
            await add_node(cluster, "open")
            await until(lambda found: found[0].spec.node_name == "open")
            return to_seconds(clock.now() - began)

    assert run_real(main) < 7


async def add_node(cluster, name, taints=(), cpu="4"):
    await cluster.create(NODES, builders.node(name, cpu=cpu, extra={"spec": {"taints": list(taints)}}))
