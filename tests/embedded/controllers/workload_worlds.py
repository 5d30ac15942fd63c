"""A small cluster in virtual time for the tests of the workload controllers."""

from __future__ import annotations

import asyncio

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.controllers import PodIndex, Scheduler, VolumeCache, VolumeController
from kubetide.embedded.controllers.workloads.cronjob import CronJobController
from kubetide.embedded.controllers.workloads.job import JobController
from kubetide.embedded.controllers.workloads.statefulset import StatefulSetController
from kubetide.embedded.draws import NO_DELAY, fixed
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import (
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    EVENTS,
    JOBS,
    NODES,
    PODS,
    STATEFUL_SETS,
)
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T00:00:00Z")
TIMES = PodTimes(
    pull=NO_DELAY,
    start=fixed(seconds(1)),
    ready=fixed(seconds(4)),
    work=fixed(seconds(30)),
    stop=fixed(seconds(2)),
)
CONTAINERS = [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]


class World:
    """One large node, the scheduler, kubelets and the controllers of StatefulSets, Jobs and CronJobs."""

    def __init__(self, clock):
        self.clock = clock
        self.cluster = cluster = EmbeddedCluster(Store(), clock)
        kinds = (PODS, NODES, STATEFUL_SETS, CONTROLLER_REVISIONS, JOBS, CRON_JOBS)
        made = [Informer(cluster, kind, clock) for kind in kinds]
        pods, nodes, stateful_sets, revisions, jobs, cron_jobs = made
        volumes = VolumeCache(cluster, clock)
        self.informers = made
        index = PodIndex(pods)
        self.kubelets = KubeletPool(cluster, clock, pods=pods, nodes=nodes, seed=1, times=TIMES)
        self.parts = [
            volumes,
            self.kubelets,
            Scheduler(cluster, clock, pods=pods, nodes=nodes, volumes=volumes),
            VolumeController(cluster, clock, volumes=volumes, pods=pods, nodes=nodes),
            StatefulSetController(
                cluster,
                clock,
                stateful_sets=stateful_sets,
                revisions=revisions,
                pods=pods,
                pod_index=index,
            ),
            JobController(cluster, clock, 1, jobs=jobs, pods=pods, pod_index=index),
            CronJobController(cluster, clock, cron_jobs=cron_jobs, jobs=jobs),
        ]

    async def sleep(self, for_s):
        await self.clock.sleep(seconds(for_s))

    async def get(self, kind, name):
        return await self.cluster.get(kind.untyped, name, namespace="default")

    async def list(self, kind):
        namespace = "default" if kind.namespaced else ""
        return list((await self.cluster.list(kind.untyped, namespace=namespace)).items)

    async def pods(self):
        """Phase by name of the pods that are not being deleted."""
        return {
            pod["metadata"]["name"]: pod["status"]["phase"]
            for pod in await self.list(PODS)
            if not pod["metadata"].get("deletionTimestamp")
        }

    async def create(self, kind, name, spec, **metadata):
        body = {"metadata": {"name": name, **metadata}, "spec": spec}
        return await self.cluster.create(kind.untyped, body, namespace="default")

    async def patch(self, kind, name, spec):
        await self.cluster.patch(kind, name, {"spec": spec}, namespace="default")

    async def delete(self, kind, name, **options):
        await self.cluster.delete(kind, name, namespace="default", **options)

    async def reasons(self):
        return [event["reason"] for event in await self.list(EVENTS)]


def play(body):
    """Run ``body(world)`` in virtual time and return what it returns; no part of the world may end by itself."""

    async def main(clock):
        world = World(clock)
        node = {
            "metadata": {"name": "n1"},
            "status": {
                "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        await world.cluster.create(NODES, node)
        tasks = [asyncio.create_task(part.run()) for part in (*world.informers, *world.parts)]
        found = await body(world)
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        return found

    return run_virtual(main, start=START)
