"""A Deployment, ElasticWorkloads of it and their loops, on an embedded cluster in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from tests.horizontal.running import Usage
from tests.tasks import stop

from kubetide.elastic.definitions import definitions
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.loop import Parts, Sources, loop_entries, parse_flags
from kubetide.loop.wiring import wire
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    ELASTIC_WORKLOADS,
    EVENTS,
    PODS,
    STORED_KINDS,
)
from kubetide.plan.board import Board
from kubetide.runtime.guard import guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339, minutes, parse_rfc3339
from kubetide.vertical.definitions import definitions as vpa_definitions
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T08:00:00Z")
HOME = "default"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
HORIZONTAL = {
    "minReplicas": 1,
    "maxReplicas": 10,
    "metrics": [CPU],
    "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0}},
}


class Records:
    """All records of all loops, every third of a loop with the whole state."""

    def __init__(self):
        self.lines = []

    def wants_full(self, loop):
        return sum(one.loop == loop for one in self.lines) % 3 == 0

    def write(self, record):
        self.lines.append(record)


class World:
    """A Deployment of 200m pods with that much usage, and the loops that a release with ElasticWorkloads runs."""

    def __init__(self, clock, loops, guard=None, kinds=()):
        self.guard = guard
        self.clock, self.records, self.board = clock, Records(), Board()
        self.cluster = EmbeddedCluster(
            Store((*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS, *kinds)), clock, seed=1
        )
        self.usage = Usage(self.cluster, clock, 100)
        self.entries = loop_entries(loops)

    async def begin(self):
        for body in (*definitions(), *vpa_definitions()):
            await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        await self.add_deployment("web", 2)

    async def add_deployment(self, name, replicas):
        body = builders.deployment(name, replicas=replicas, cpu="200m")
        await self.cluster.create(DEPLOYMENTS, body, namespace=HOME)
        await self.cluster.patch(
            DEPLOYMENTS, name, {"status": {"replicas": replicas}}, namespace=HOME, subresource="status"
        )
        since = format_rfc3339(START - minutes(60))
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        for index in range(replicas):
            await self.cluster.create(
                PODS, builders.pod(f"{name}-{index}", labels={"app": name}, cpu="200m"), namespace=HOME
            )
            status = {"phase": "Running", "startTime": since, "conditions": ready}
            await self.cluster.patch(
                PODS, f"{name}-{index}", {"status": status}, namespace=HOME, subresource="status"
            )

    async def add(self, name="web", target="web", **sections):
        body = {
            "apiVersion": ELASTIC_WORKLOADS.api_version,
            "kind": ELASTIC_WORKLOADS.kind,
            "metadata": {"name": name},
            "spec": {"targetRef": {**WEB, "name": target}, **sections},
        }
        await self.cluster.create(ELASTIC_WORKLOADS, body, namespace=HOME)

    async def get(self, name="web"):
        return await self.cluster.get(ELASTIC_WORKLOADS, name, namespace=HOME)

    async def accepted(self, name="web"):
        found = {one.type: one for one in (await self.get(name)).status.conditions or ()}
        return found["Accepted"].status, found["Accepted"].reason, found["Accepted"].message

    async def replicas(self, name="web"):
        return (await self.cluster.get(DEPLOYMENTS, name, namespace=HOME)).spec.replicas

    async def events(self):
        found = (await self.cluster.list(EVENTS, namespace=HOME)).items
        return {(one.involved_object.kind, one.involved_object.name, one.reason) for one in found}

    @asynccontextmanager
    async def running(self):
        """Run the loops beside the block, and assert that none had a bug."""
        caches = Caches(self.cluster, self.clock)
        parts = Parts(
            cluster=self.cluster if self.guard is None else guarded_cluster(self.cluster, self.guard),
            clock=self.clock,
            recorder=self.records,
            caches=caches,
            board=self.board,
            sources=Sources(self.usage),
        )
        loops = wire(self.entries, parts, parse_flags({}, self.entries))

        async def run():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(caches.run())
                for one in loops:
                    tasks.create_task(one.runner.run())

        task = asyncio.create_task(run())
        yield
        await stop(task)
        for one in loops:
            assert one.loop.health.bugs == 0, one.loop.health.last_failure


def play(story, loops=("elastic", "schedules", "horizontal", "recommender"), guard=None, kinds=()):
    """Run ``story(world)`` in virtual time, and return the world."""

    async def main(clock):
        world = World(clock, loops, guard, kinds)
        await world.begin()
        await story(world)
        return world

    return run_virtual(main, start=START)


def replay(world):
    """Decide again from the records, and assert that the decisions are the same."""
    for entry in world.entries:
        core = entry.core()
        for record in (one for one in world.records.lines if one.loop == entry.name):
            core.apply(bytes(record.state), full=record.full)
            assert core.decide(record.now) == bytes(record.commands)
            core.absorb(bytes(record.outcomes), record.now)
