"""The recommender's controller on an embedded cluster, with pods whose usage a test sets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import msgspec
import numpy as np
from tests.loops import run_alone
from tests.tasks import stop
from tests.vertical.custom_kinds import SCALE, TABS, WHERE, definition
from tests.vertical.recommender.running import START

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    VPA_CHECKPOINTS,
    VPAS,
)
from kubetide.plan.board import Board
from kubetide.ports.errors import MetricsError, NoSeries, Withheld
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import seconds
from kubetide.vertical.recommender.controller import RecommenderController
from kubetide.vertical.recommender.settings import Settings
from kubetide.watching import Caches


def vpa(name="web", kind="Deployment", target="web", **spec):
    return {
        "metadata": {"name": name},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target}, **spec},
    }


class Usage:
    def __init__(self, clock):
        self.clock, self.error, self.delay = clock, "", seconds(0)
        self.used = {"web-0": (380, 450_000_000)}

    async def pod_samples(self, namespace="", labels=""):
        if self.error:
            raise MetricsError(self.error)
        if self.delay:
            await self.clock.sleep(self.delay)
        count = len(self.used)
        every = np.ones(count, np.bool_)
        return PodSamples(
            namespaces=("default",) * count,
            names=tuple(self.used),
            timestamp_ns=np.full(count, self.clock.now(), np.int64),
            window_ns=np.full(count, seconds(15), np.int64),
            first=np.arange(count + 1),
            containers=("app",) * count,
            usage={
                "cpu": ResourceUsage(np.array([cpu for cpu, _ in self.used.values()]), every),
                "memory": ResourceUsage(np.array([size * 1000 for _, size in self.used.values()]), every),
            },
        )


class NoExternal:
    async def external_values(self, metric, *, namespace, selector=""):
        raise NoSeries("none")


class MemoryRecorder:
    """A recorder that stores the bytes of the records; every third is full."""

    def __init__(self):
        self.lines = []

    def wants_full(self, loop):
        return len(self.lines) % 3 == 0

    def write(self, record):
        self.lines.append(msgspec.json.encode(record))


class Advising:
    """A cluster that takes no writes."""

    def __init__(self, cluster):
        self.cluster = cluster

    def __getattr__(self, name):
        return getattr(self.cluster, name)

    async def patch(self, *_, **__):
        raise Withheld("advice only")

    create = delete = patch


class World:
    def __init__(self, clock, *, acts=True, **settings):
        self.clock, self.recorder = clock, MemoryRecorder()
        self.external, self.board = None, Board()
        self.cluster = EmbeddedCluster(Store(), clock, seed=1)
        self.usage = Usage(clock)
        self.acts, self.settings = acts, Settings(**settings)
        self.history, self.warnings = None, []
        self.controller = self.made()

    def made(self):
        cluster = self.cluster if self.acts else Advising(self.cluster)
        self.caches = Caches(cluster, self.clock)
        return RecommenderController(
            cluster,
            self.usage,
            self.clock,
            self.recorder,
            self.settings,
            caches=self.caches,
            board=self.board,
            history=self.history,
            external=self.external or NoExternal(),
            warn=self.warnings.append,
        )

    async def begin(self, *vpas):
        with suppress(Exception):
            await self.cluster.create(NAMESPACES, {"metadata": {"name": "default"}})
        for kind in (VPAS, VPA_CHECKPOINTS):
            await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind))
        await self.cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=1, cpu="200m"), **WHERE)
        body = builders.pod("web-0", labels={"app": "web"}, cpu="200m")
        body["spec"]["containers"][0] |= {
            "name": "app",
            "resources": {"requests": {"cpu": "200m", "memory": "2000Mi"}},
        }
        await self.cluster.create(PODS, body, **WHERE)
        await self.show({"phase": "Running", "containerStatuses": [running(0)]})
        for one in vpas or (vpa(),):
            await self.cluster.create(VPAS, one, **WHERE)

    async def show(self, status):
        await self.cluster.patch(PODS, "web-0", {"status": status}, subresource="status", **WHERE)

    async def run_for(self, duration):
        async with self.running():
            await self.clock.sleep(duration)

    @asynccontextmanager
    async def running(self):
        """Run the controller as long as the context is open; no pass of it may fail."""
        task = asyncio.create_task(run_alone(self.controller, self.caches, self.clock))
        try:
            yield
        finally:
            await stop(task)
        assert self.controller.health.failures == 0, self.controller.health.last_failure

    async def add_custom_target(self):
        """Define the kind of tabs, and create a VPA for the tab "tab", which is not there yet."""
        await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=SCALE))
        reference = {"apiVersion": TABS.api_version, "kind": TABS.kind, "name": "tab"}
        body = {"metadata": {"name": "tab"}, "spec": {"targetRef": reference}}
        await self.cluster.create(VPAS, body, **WHERE)

    async def status(self, name="web"):
        return (await self.cluster.get(VPAS, name, **WHERE)).status

    async def target(self, name="web"):
        [container] = (await self.status(name)).recommendation.container_recommendations
        return container.target


def running(restarts, **more):
    return {
        "name": "app",
        "restartCount": restarts,
        "ready": True,
        "state": {"running": {"startedAt": "2026-03-02T08:00:00Z"}},
        "image": "nginx",
        "imageID": "",
        **more,
    }


def story(main, **settings):
    async def inside(clock):
        world = World(clock, **settings)
        await main(world)

    run_virtual(inside, start=START)
