"""An embedded cluster with kubelets, a Deployment, a VPA object and the updater, in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import msgspec
from tests.loops import run_alone
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    REPLICA_SETS,
    VPAS,
)
from kubetide.plan.board import Board
from kubetide.ports.errors import NotFound
from kubetide.runtime.guard import guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339_micro, parse_rfc3339, seconds
from kubetide.vertical.updater.controller import UpdaterController
from kubetide.vertical.updater.settings import Settings
from kubetide.watching import Caches, Informer

START = parse_rfc3339("2026-03-02T08:00:00Z")
HOME = {"namespace": "default"}

# As permissive as can be: the real definition is installed by its own command.
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "verticalpodautoscalers.autoscaling.k8s.io"},
    "spec": {
        "group": "autoscaling.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "verticalpodautoscalers", "kind": "VerticalPodAutoscaler"},
        "versions": [
            {
                "name": "v1",
                "storage": True,
                "served": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


class MemoryRecorder:
    """A recorder that stores the records' bytes; every third loop is full."""

    def __init__(self):
        self.lines, self.ticks = [], 0

    def wants_full(self, loop):
        self.ticks += 1
        return self.ticks % 3 == 1

    def write(self, record):
        self.lines.append(msgspec.json.encode(record))


def recommendation(cpu="500m", memory="500Mi", container="main", lower="300m", upper="800m"):
    return {
        "containerName": container,
        "target": {"cpu": cpu, "memory": memory},
        "lowerBound": {"cpu": lower, "memory": "300Mi"},
        "upperBound": {"cpu": upper, "memory": "800Mi"},
    }


class World:
    def __init__(self, clock, guard=None, **settings):
        self.clock, self.recorder = clock, MemoryRecorder()
        self.cluster = EmbeddedCluster(Store(), clock, seed=1)
        self.pods = Informer(self.cluster, PODS, clock)
        self.nodes = Informer(self.cluster, NODES, clock)
        self.kubelets = KubeletPool(
            self.cluster,
            clock,
            pods=self.pods,
            nodes=self.nodes,
            seed=1,
            times=PodTimes(),
            animates=lambda _: True,
        )
        safe = guarded_cluster(self.cluster, guard) if guard else self.cluster
        self.caches = Caches(safe, clock)
        self.warnings, self.board = [], Board()
        self.updater = UpdaterController(
            safe,
            clock,
            self.recorder,
            Settings(**settings),
            caches=self.caches,
            board=self.board,
            warn=self.warnings.append,
        )

    async def build(self, replicas=2, *, mode="Recreate", node_cpu="4", lease=True, **spec):
        """Make a Deployment with its pods on one node, and a VPA with a recommendation of it."""
        self.replicas = replicas
        await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
        await self.cluster.create(NODES, builders.node("n1", cpu=node_cpu, memory="16Gi"))
        web = await self.cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=replicas), **HOME)
        set_body = builders.replica_set("web-1", replicas=replicas)
        set_body["metadata"]["ownerReferences"] = [builders.owner_reference(web, controller=True)]
        self.owner = await self.cluster.create(REPLICA_SETS, set_body, **HOME)
        for index in range(replicas):
            await self.add_pod(f"web-{index}")
        body = {
            "apiVersion": VPAS.api_version,
            "kind": VPAS.kind,
            "metadata": {"name": "web"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "updatePolicy": {"updateMode": mode},
                **spec,
            },
        }
        await self.cluster.create(VPAS, body, **HOME)
        await self.recommend()
        if lease:
            await self.renew_lease(create=True)

    async def renew_lease(self, *, create=False):
        body = builders.lease("vpa-admission-controller", namespace="kube-system", holder="h")
        spec = {"renewTime": format_rfc3339_micro(self.clock.now())}
        if create:
            await self.cluster.create(LEASES, body, namespace="kube-system")
        await self.cluster.patch(LEASES, "vpa-admission-controller", {"spec": spec}, namespace="kube-system")

    async def renew_lease_forever(self):
        while True:
            await self.renew_lease()
            await self.clock.sleep(seconds(10))

    async def recommend(self, **more):
        status = {"recommendation": {"containerRecommendations": [recommendation(**more)]}}
        await self.cluster.patch(VPAS, "web", {"status": status}, **HOME, subresource="status")

    async def add_pod(self, name, *, annotations=None, cpu="100m"):
        body = builders.pod(name, labels={"app": "web"}, cpu=cpu, memory="100Mi")
        body["metadata"]["ownerReferences"] = [builders.owner_reference(self.owner, controller=True)]
        if annotations:
            body["metadata"]["annotations"] = annotations
        body["spec"]["containers"][0]["name"] = "main"
        await self.cluster.create(PODS, body, **HOME)
        await self.cluster.bind(namespace="default", pod=name, node="n1")

    @asynccontextmanager
    async def running(self, *, lease=True):
        tasks = [asyncio.create_task(one.run()) for one in (self.pods, self.nodes, self.kubelets)]
        await self.clock.sleep(seconds(60))
        tasks.append(asyncio.create_task(run_alone(self.updater, self.caches, self.clock)))
        if lease:
            tasks.append(asyncio.create_task(self.renew_lease_forever()))
        yield
        for task in tasks:
            assert not task.done(), task
            await stop(task)
        assert self.updater.health.failures == 0, self.updater.health.last_failure

    async def requests(self):
        """Give what the first container of each pod requests, by pod."""
        pods = (await self.cluster.list(PODS, **HOME)).items
        return {
            pod.metadata.name: pod.spec.containers[0].resources.requests
            for pod in pods
            if pod.metadata.deletion_timestamp is None
        }

    async def pod(self, name):
        try:
            return await self.cluster.get(PODS, name, **HOME)
        except NotFound:
            return None

    async def events(self):
        found = (await self.cluster.list(EVENTS, **HOME)).items
        return sorted((event.reason, event.involved_object.name) for event in found)


def play(story, guard=None, **settings):
    return run_virtual(lambda clock: story(World(clock, guard, **settings)), start=START)
