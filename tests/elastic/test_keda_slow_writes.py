"""Writes for ScaledObjects that the API server does not answer."""

from __future__ import annotations

import asyncio

from tests.elastic.test_keda_faults import Silent
from tests.loops import run_alone
from tests.tasks import stop

from kubetide.elastic.keda.controller.controller import ScaledObjectsController
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.loop import NoSettings, Parts
from kubetide.objects.kinds import DEPLOYMENTS, EVENTS, SCALED_OBJECTS, STORED_KINDS, TIME_TABLE_KINDS
from kubetide.plan.board import Board
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T00:00:00Z")


class Hang:
    """Writes of this subresource about ``api`` take 40 seconds; notes when they come, in seconds."""

    def __init__(self, clock, subresource):
        self.clock, self.subresource, self.came = clock, subresource, []

    async def before(self, request):
        if request.verb != "get" and (request.name, request.subresource) == ("api", self.subresource):
            self.came.append((self.clock.now() - START) // seconds(1))
            await asyncio.sleep(40)


class Slow:
    """Each status takes a second; notes which requests are made beside."""

    def __init__(self):
        self.others = []

    async def before(self, request):
        if request.subresource == "status":
            await asyncio.sleep(1)
        else:
            self.others.append((request.verb, request.name, request.subresource))


def play(story, subresource):
    """Play beside two ScaledObjects that are paused at five replicas, of targets that have one."""
    play_with(story, ("api", "web"), lambda clock: Hang(clock, subresource))


def play_with(story, names, faults_of):
    async def run(clock):
        cluster = EmbeddedCluster(Store((*STORED_KINDS, *TIME_TABLE_KINDS)), clock, seed=1)
        for name in names:
            await cluster.create(DEPLOYMENTS, builders.deployment(name, replicas=1), namespace="default")
            spec = {
                "scaleTargetRef": {"name": name},
                "minReplicaCount": 1,
                "pollingInterval": 5,
                "triggers": [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}],
            }
            meta = {"name": name, "annotations": {"autoscaling.keda.sh/paused-replicas": "5"}}
            await cluster.create(SCALED_OBJECTS, {"metadata": meta, "spec": spec}, namespace="default")
        cluster.faults = faults = faults_of(clock)
        caches = Caches(cluster, clock)
        loop = ScaledObjectsController(
            Parts(cluster=cluster, clock=clock, recorder=Silent(), caches=caches, board=Board()), NoSettings()
        )
        task = asyncio.create_task(run_alone(loop, caches, clock))
        await story(cluster, clock, faults)
        await stop(task)
        await loop.close()
        assert loop.health.failures == 0, loop.health.last_failure

    run_virtual(run, start=START)


async def sizes(cluster):
    return [
        (await cluster.get(DEPLOYMENTS, name, namespace="default")).spec.replicas for name in ("api", "web")
    ]


def test_a_size_that_hangs_makes_no_other_late():
    """The other target has its size at once; one write is sent, and none that fails is told of."""

    async def story(cluster, clock, hang):
        await clock.sleep(seconds(10))
        assert await sizes(cluster) == [1, 5]
        await clock.sleep(seconds(50))
        assert await sizes(cluster) == [5, 5]
        assert hang.came == [0]
        assert [one.reason for one in (await cluster.list(EVENTS)).items if one.type == "Warning"] == []

    play(story, "scale")


def test_a_status_that_hangs_makes_no_size_late():
    """The next ticks come in time, and the status is there in the end."""

    async def story(cluster, clock, hang):
        await clock.sleep(seconds(4))
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}}, namespace="default")
        patch = {"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "7"}}}
        await cluster.patch(SCALED_OBJECTS, "web", patch, namespace="default")
        await clock.sleep(seconds(27))
        assert await sizes(cluster) == [5, 7]
        await clock.sleep(seconds(40))
        found = await cluster.get(SCALED_OBJECTS.untyped, "api", namespace="default")
        assert found["status"]["conditions"]
        assert hang.came[0] == 0

    play(story, "status")


def test_statuses_of_many_objects_make_no_size_late():
    """Those of 200 objects take 20 seconds, and all are written; a size that changes meanwhile is not 20 seconds late."""

    async def story(cluster, clock, _):
        await clock.sleep(seconds(1))
        patch = {"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "7"}}}
        await cluster.patch(SCALED_OBJECTS, "web", patch, namespace="default")
        await clock.sleep(seconds(8))
        assert (await cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas == 7
        await clock.sleep(seconds(40))
        found = (await cluster.list(SCALED_OBJECTS.untyped, namespace="default")).items
        assert all(one["status"]["conditions"] for one in found)

    play_with(story, (*(f"api-{number}" for number in range(200)), "web"), lambda _: Slow())


def test_the_size_of_a_deployment_costs_a_request_only_after_a_write():
    """Thousands of them would take all that the rate limit grants; else its cache says it."""

    async def story(cluster, clock, slow):
        await clock.sleep(seconds(30))
        assert await sizes(cluster) == [5, 5]
        reads = [name for verb, name, subresource in slow.others if (verb, subresource) == ("get", "scale")]
        assert sorted(reads) == ["api", "web"]

    play_with(story, ("api", "web"), lambda _: Slow())
