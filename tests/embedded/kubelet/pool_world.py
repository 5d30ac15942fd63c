"""A cluster whose pods are run by a pool of kubelets, in virtual time."""

from __future__ import annotations

import asyncio

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.draws import fixed
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import pod_condition
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T00:00:00Z")
TIMES = PodTimes(
    pull=fixed(seconds(10)),
    cached=fixed(seconds(1)),
    start=fixed(seconds(2)),
    ready=fixed(seconds(5)),
    stop=fixed(seconds(4)),
)


class World:
    """A cluster with kubelets on all nodes whose names begin with n."""

    def __init__(self, clock, faults=None, **options):
        self.clock = clock
        self.cluster = EmbeddedCluster(Store(), clock)
        self.pods = Informer(self.cluster, PODS, clock)
        self.nodes = Informer(self.cluster, NODES, clock)
        self.pool = KubeletPool(
            self.cluster.client(faults=faults) if faults else self.cluster,
            clock,
            pods=self.pods,
            nodes=self.nodes,
            **(
                {"seed": 1, "times": TIMES, "animates": lambda node: node.metadata.name.startswith("n")}
                | options
            ),
        )

    async def at(self, second):
        await self.clock.sleep(seconds(second) - (self.clock.now() - START))

    async def add_node(self, name="n1"):
        conditions = [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-02T00:00:00Z"},
        ]
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": conditions},
        }
        await self.cluster.create(NODES, body)

    async def add_pod(self, name="p", node="n1", image="web:1", grace=30, **spec):
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "containers": [{"name": "main", "image": image}],
                "terminationGracePeriodSeconds": grace,
            }
            | spec,
        }
        await self.cluster.create(PODS, body, namespace="default")
        if node:
            await self.cluster.bind(namespace="default", pod=name, node=node)

    async def pod(self, name="p"):
        return await self.cluster.get(PODS, name, namespace="default")

    async def exists(self, name="p"):
        try:
            await self.pod(name)
        except NotFound:
            return False
        return True

    async def ready(self, name="p"):
        condition = pod_condition(await self.pod(name), "Ready")
        return None if condition is None else condition.status

    async def delete(self, name="p", **options):
        await self.cluster.delete(PODS, name, namespace="default", **options)


def play(body, **options):
    """Run ``body(world)`` beside the pool and its informers, and return its result."""

    async def main(clock):
        world = World(clock, **options)
        tasks = [asyncio.create_task(each.run()) for each in (world.pods, world.nodes, world.pool)]
        result = await body(world)
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        return result

    return run_virtual(main, start=START)
