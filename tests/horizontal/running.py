"""The controller on an embedded cluster in virtual time, with metric sources that answer as they are reported."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import msgspec
import numpy as np
from tests.horizontal import worlds
from tests.loops import run_alone
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.settings import Settings
from kubetide.objects.kinds import DEPLOYMENTS, EVENTS, HPAS, PODS
from kubetide.plan.board import Board
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import ExternalValues, ObjectValue, PodValues
from kubetide.runtime.guard import guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339, milliseconds, minutes, parse_rfc3339
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T08:00:00Z")


class Usage:
    """A metric source: every running pod uses that much CPU; ``cluster_wide`` says whether all may be listed."""

    def __init__(self, cluster, clock, milli):
        self.cluster, self.clock, self.milli = cluster, clock, milli
        self.cluster_wide, self.error, self.questions = True, "", []

    async def pod_samples(self, namespace="", labels=""):
        self.questions.append((namespace, labels))
        if self.error or not (namespace or self.cluster_wide):
            raise MetricsError(self.error or "no lists of all namespaces here")
        pods = await self.cluster.list(PODS, namespace=namespace, labels=labels)
        return worlds.samples(
            {(pod.metadata.namespace, pod.metadata.name): self.milli for pod in pods.items},
            at=self.clock.now(),
        )


class Measured:
    """Custom and external metrics: answers by question, in the words that the loop asks in.

    An answer is a dict by pod, a number, a list of series, or a text that is the error. ``most``
    is how many questions were in flight at once.
    """

    def __init__(self, clock):
        self.clock, self.answers, self.questions, self.flying, self.most = clock, {}, [], 0, 0

    async def _answer(self, *question):
        self.questions.append(question)
        self.flying += 1
        self.most = max(self.most, self.flying)
        await self.clock.sleep(milliseconds(1))
        self.flying -= 1
        found = self.answers.get(question, "there is no such metric")
        if isinstance(found, str):
            raise MetricsError(found)
        return found

    async def pod_values(self, metric, *, namespace, pods="", selector=""):
        found = await self._answer("pods", namespace, metric, selector, pods)
        return PodValues(
            tuple(found), np.array(list(found.values()), np.int64), np.zeros(len(found), np.int64)
        )

    async def object_value(self, metric, *, namespace, api_version, kind, name, selector=""):
        found = await self._answer("object", namespace, metric, selector, api_version, kind, name)
        return ObjectValue(found, 0)

    async def external_values(self, metric, *, namespace, selector=""):
        return ExternalValues(await self._answer("external", namespace, metric, selector), 0)


class MemoryRecorder:
    """A recorder that stores the bytes of the records, as a file would; every third is full."""

    def __init__(self):
        self.lines = []

    def wants_full(self, loop):
        return len(self.lines) % 3 == 0

    def write(self, record):
        self.lines.append(msgspec.json.encode(record))


class World:
    def __init__(self, clock, guard=None, *, measures=True, owners=None, advises=False, **settings):
        self.clock, self.board, self.recorder = clock, Board(), MemoryRecorder()
        self.store = Store()
        self.cluster = EmbeddedCluster(self.store, clock, seed=1)
        self.usage = Usage(self.cluster, clock, 100)
        self.measured = Measured(clock)
        seen = guarded_cluster(self.cluster, guard) if guard else self.cluster
        self.caches = Caches(seen, clock)
        self.controller = HorizontalController(
            seen,
            self.usage,
            clock,
            self.recorder,
            self.board,
            Settings(**settings),
            custom=self.measured if measures else None,
            external=self.measured if measures else None,
            owners=owners,
            advises=advises,
            caches=self.caches,
        )

    async def add(self, name="web", replicas=2, **hpa):
        await self.cluster.create(
            DEPLOYMENTS, builders.deployment(name, replicas=replicas, cpu="200m"), namespace="default"
        )
        await self.show_replicas(replicas, name)
        await self.cluster.create(HPAS, builders.hpa(name, name, **hpa), namespace="default")
        for index in range(replicas):
            await self.add_pod(f"{name}-{index}", name)

    async def show_replicas(self, replicas, name="web"):
        """Say in the Deployment's status how many there are; nobody else does in this world."""
        patch = {"status": {"replicas": replicas}}
        await self.cluster.patch(DEPLOYMENTS, name, patch, namespace="default", subresource="status")

    async def add_pod(self, name, app):
        since = format_rfc3339(START - minutes(60))
        body = builders.pod(name, labels={"app": app}, cpu="200m")
        await self.cluster.create(PODS, body, namespace="default")
        status = {
            "phase": "Running",
            "startTime": since,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        }
        await self.cluster.patch(PODS, name, {"status": status}, namespace="default", subresource="status")

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(run_alone(self.controller, self.caches, self.clock))
        await asyncio.sleep(0)
        yield
        await stop(task)
        assert self.controller.health.bugs == 0, self.controller.health.last_failure

    async def replicas(self, name="web"):
        return (await self.cluster.get(DEPLOYMENTS, name, namespace="default")).spec.replicas

    async def hpa(self, name="web"):
        return await self.cluster.get(HPAS, name, namespace="default")

    async def events(self):
        found = (await self.cluster.list(EVENTS, namespace="default")).items
        return sorted((event.reason, event.message, event.count) for event in found)


def play(story, **settings):
    return run_virtual(lambda clock: story(World(clock, **settings)), start=START)


def check_replay(lines):
    """The records of the run decide the same again, from their first line on and from each full one."""
    records = [msgspec.json.decode(line) for line in lines]
    for first, record in enumerate(records):
        if not record.get("full"):
            continue
        core = HorizontalCore()
        for one in records[first:]:
            core.apply(msgspec.json.encode(one["state"]), full=one.get("full", False) and one is record)
            assert core.decide(one["now"]) == msgspec.json.encode(one["commands"])
            again = core.absorb(msgspec.json.encode(one["outcomes"]), one["now"])
            assert again == msgspec.json.encode(one["result"])
