"""A living cluster for tests of the node loop: embedded store, cloud, scheduler, kubelets, workload controllers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import msgspec
from tests.loops import run_alone

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.embedded.cloud.faults import NO_FAULTS
from kubetide.embedded.controllers.scheduling.scheduler import Scheduler
from kubetide.embedded.controllers.workloads.deployment import DeploymentController
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex
from kubetide.embedded.controllers.workloads.replicaset import ReplicaSetController
from kubetide.embedded.kubelet.pool import KubeletPool
from kubetide.explain.records import Record
from kubetide.nodes.capacity.definitions import definitions
from kubetide.nodes.controller import NodesController
from kubetide.nodes.core import NodesCore
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PDBS,
    POD_TEMPLATES,
    PODS,
    REPLICA_SETS,
)
from kubetide.plan.board import Board
from kubetide.ports.errors import Forbidden
from kubetide.runtime.guard import guarded_cloud, guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import Duration, minutes, parse_rfc3339
from kubetide.watching import Caches, Informer

START = parse_rfc3339("2026-03-02T08:00:00Z")
SMALL = GroupSpec(name="small", instance_type="m5.large", max_size=10)


class Free:
    """A guard that lets everything be written."""

    def refusal(self):
        return ""


FREE = Free()


class MemoryRecorder:
    """A recorder that stores the bytes of the records, as a file would; one in ``full_every`` is full."""

    def __init__(self, full_every):
        self.lines, self.full_every, self.since = [], full_every, None

    def wants_full(self, loop):
        return self.since is None or self.since >= self.full_every

    def write(self, record):
        self.since = 0 if record.full else self.since + 1
        self.lines.append(msgspec.json.encode(record))

    @property
    def records(self):
        return [msgspec.json.decode(line, type=Record) for line in self.lines]

    @property
    def reasons(self):
        return [reason for record in self.records for reason in record.reasons]


class Refusing:
    """A client that may not list objects of some kinds, as RBAC refuses it."""

    def __init__(self, inner, refused):
        self._inner, self.refused = inner, refused

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def list(self, kind, **where):
        if kind in self.refused:
            raise Forbidden(
                f'{kind.resource} is forbidden: User "x" cannot list resource "{kind.plural}" in API group '
                f'"{kind.group}" at the cluster scope'
            )
        return await self._inner.list(kind, **where)


class World:
    """Everything wired; the parts run inside ``running``."""

    def __init__(
        self,
        clock,
        groups=(SMALL,),
        *,
        faults=NO_FAULTS,
        catalogue=None,
        creatable=(),
        full_every=50,
        guard=FREE,
        wrap=lambda cluster: cluster,
        **settings,
    ):
        self.clock, self.board, self.recorder = clock, Board(), MemoryRecorder(full_every)
        self.cluster = EmbeddedCluster(Store(), clock, seed=1)
        self.informers = {
            kind.plural: Informer(self.cluster, kind, clock)
            for kind in (PODS, NODES, DEPLOYMENTS, REPLICA_SETS, PDBS)
        }
        extra = {"creatable": creatable} if catalogue is None else {"catalogue": catalogue}
        self.cloud = EmbeddedCloud(self.cluster, clock, seed=1, groups=groups, faults=faults, **extra)
        self._wrap, self._settings = wrap, settings
        self.begin_process(guard)

    def begin_process(self, guard):
        """Make the loop as a fresh process has it: it knows nothing."""
        seen = self._wrap(guarded_cluster(self.cluster, guard))
        self.caches = Caches(seen, self.clock)
        self.controller = NodesController(
            seen,
            guarded_cloud(self.cloud, guard),
            self.clock,
            self.recorder,
            self.board,
            Settings(**self._settings),
            seed=1,
            caches=self.caches,
        )

    async def run_loop(self):
        """Run the node loop until cancelled."""
        await run_alone(self.controller, self.caches, self.clock)

    @asynccontextmanager
    async def running(self):
        pods, nodes = self.informers["pods"], self.informers["nodes"]
        sets, deployments = self.informers["replicasets"], self.informers["deployments"]
        index = PodIndex(pods)
        tasks = [asyncio.create_task(informer.run()) for informer in self.informers.values()]
        for informer in self.informers.values():
            await informer.synced()
        await self.cloud.start()
        one = {"seed": 1}
        parts = (
            self.cloud.run(),
            KubeletPool(self.cluster, self.clock, pods=pods, nodes=nodes, **one).run(),
            Scheduler(self.cluster, self.clock, pods=pods, nodes=nodes).run(),
            ReplicaSetController(
                self.cluster, self.clock, 1, replica_sets=sets, pods=pods, pod_index=index
            ).run(),
            DeploymentController(
                self.cluster,
                self.clock,
                deployments=deployments,
                replica_sets=sets,
                pods=pods,
                pod_index=index,
            ).run(),
            self.run_loop(),
        )
        tasks += [asyncio.create_task(part) for part in parts]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
        assert self.controller.health.failures == 0, self.controller.health.last_failure

    async def deploy(self, name="web", replicas=3, **pod):
        body = builders.deployment(name, replicas=replicas, **pod)
        await self.cluster.create(DEPLOYMENTS, body, namespace="default")

    async def scale(self, name, replicas):
        await self.cluster.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, namespace="default")

    async def define_capacity_kinds(self):
        """Create the definitions of buffers, quotas and ProvisioningRequests."""
        for body in definitions():
            await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)

    async def add_pod_template(self, name, cpu):
        body = {"metadata": {"name": name}, "template": {"spec": builders.pod_spec(cpu=cpu)}}
        await self.cluster.create(POD_TEMPLATES, body, namespace="default")

    async def after(self, duration: Duration):
        await self.clock.sleep(duration)

    @property
    def nodes(self):
        return sorted(name for _, name in self.informers["nodes"].objects)

    @property
    def pending(self):
        return sorted(
            pod.metadata.name for pod in self.informers["pods"].objects.values() if not pod.spec.node_name
        )

    async def events(self, reason):
        found = (await self.cluster.list(EVENTS)).items
        return sorted(event.message for event in found if event.reason == reason)

    async def status(self):
        found = await self.cluster.get(CONFIG_MAPS, "cluster-autoscaler-status", namespace="kube-system")
        return found.data["status"]


def play(story, groups=(SMALL,), *, world_of=None, **settings):
    """Run a story in virtual time and return the world as it was left."""

    async def main(clock):
        world = (world_of or World)(clock, groups, **settings)
        async with world.running():
            await story(world)
        return world

    return run_virtual(main, start=START)


def replayed(world):
    """Decide the records again; return how many there were. Asserts that the bytes are the same."""
    core = NodesCore()
    for record in world.recorder.records:
        core.apply(bytes(record.state), full=record.full)
        assert core.decide(record.now) == bytes(record.commands), (record.tick, record.phase)
        assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result), (
            record.tick,
            record.phase,
        )
    return len(world.recorder.lines)


SHORT = {
    "scale_down_unneeded_time": minutes(3),
    "scale_down_delay_after_add": minutes(1),
}
"""Settings that make scale-down come soon."""
