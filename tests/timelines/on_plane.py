"""A real control plane as the stage of a timeline, with the embedded kubelets as its clients."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

from tests.plane.running import Plane, running_plane
from tests.timelines.observer import Noted
from tests.timelines.stages import TIMES, PlayedStage
from tests.timelines.timeline import NAMESPACE, Timeline

from kubetide.cluster import HttpCluster
from kubetide.embedded.cloud.groups import node_conditions
from kubetide.embedded.kubelet import KubeletPool
from kubetide.objects.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    INERT_KINDS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PDBS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import ZERO, milliseconds, seconds
from kubetide.watching import Informer

LEASE_RENEWAL_S = 1
_SERVICE_ACCOUNTS = next(kind for kind in INERT_KINDS if kind.kind == "ServiceAccount")
_WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, REPLICA_SETS, PDBS)
_A_MOMENT = milliseconds(100)


@contextmanager
def plane_for(timeline: Timeline, folder: Path):
    """Yield a control plane for the runs of a timeline."""
    # Nodes are looked at each second, as the phase of five seconds in which a run begins would decide what it sees.
    flags: tuple[str, ...] = ("--node-monitor-period=1s",)
    if timeline.grace is not None:
        flags = (*flags, f"--node-monitor-grace-period={timeline.grace}s")
    with running_plane(folder, manager_flags=flags) as plane:
        yield plane


class PlaneStage(PlayedStage):
    """A namespace of a real control plane."""

    async def make_ready(self, node: str) -> None:
        status = {"status": {"conditions": node_conditions(ready=True, now=self.clock.now())}}
        await self.cluster.patch(NODES, node, status, subresource="status")

    async def silence(self, node: str) -> None:
        self.pool.silence_node(node)

    async def resume(self, node: str) -> None:
        await self.make_ready(node)
        self.pool.resume_node(node)

    async def prepare(self, timeline: Timeline) -> None:
        await super().prepare(timeline)
        if timeline.grace is not None:
            # They have leases by now; a node that was missed before it had one is well again.
            await self.clock.sleep(seconds(2))
            for kind, body in timeline.before:
                if kind is NODES:
                    await self.make_ready(body["metadata"]["name"])
        # Until its ServiceAccount is there no pod is; and the scheduler hears of nodes a moment after us.
        while not await self._has_account():
            await self.clock.sleep(_A_MOMENT)
        await self.clock.sleep(seconds(1))

    async def _has_account(self) -> bool:
        try:
            await self.cluster.get(_SERVICE_ACCOUNTS, "default", namespace=self.namespace)
        except NotFound:
            return False
        return True


def play_real(timeline: Timeline, plane: Plane) -> list[Noted]:
    """Return what a timeline comes to on a control plane, which is empty again afterwards."""

    async def main(clock: Clock) -> list[Noted]:
        async with HttpCluster(plane.connection, clock) as cluster, AsyncExitStack() as stack:
            made = await cluster.create(NAMESPACES, {"metadata": {"generateName": f"{NAMESPACE}-"}})
            pods, nodes = Informer(cluster, PODS, clock), Informer(cluster, NODES, clock)
            for informer in (pods, nodes):
                await stack.enter_async_context(informer.running())
                await informer.synced()
            pool = KubeletPool(
                cluster,
                clock,
                seed=5,
                times=TIMES,
                pods=pods,
                nodes=nodes,
                lease_renewal=ZERO if timeline.grace is None else seconds(LEASE_RENEWAL_S),
            )
            living = asyncio.create_task(pool.run())
            try:
                return await PlaneStage(cluster, clock, made.metadata.name, pool).play(timeline)
            finally:
                living.cancel()
                await _clear(cluster, clock, made.metadata.name)

    return run_real(main)


async def _clear(cluster: Cluster, clock: Clock, namespace: str) -> None:
    """Take away all that a run has left."""
    for kind in _WORKLOADS:
        for one in (await cluster.list(kind, namespace=namespace)).items:
            with suppress(NotFound):
                await cluster.delete(kind, one.metadata.name, namespace=namespace)
    for one in (await cluster.list(NODES)).items:
        await cluster.delete(NODES, one.metadata.name)
    while pods := (await cluster.list(PODS, namespace=namespace)).items:
        for pod in pods:
            if pod.metadata.finalizers:
                with suppress(NotFound):
                    patch = {"metadata": {"finalizers": None}}
                    await cluster.patch(PODS, pod.metadata.name, patch, namespace=namespace)
            with suppress(NotFound):
                await cluster.delete(PODS, pod.metadata.name, namespace=namespace, grace_period_s=0)
        await clock.sleep(_A_MOMENT)
    for one in (await cluster.list(PRIORITY_CLASSES)).items:
        if not one.metadata.name.startswith("system-"):
            await cluster.delete(PRIORITY_CLASSES, one.metadata.name)
    for one in (await cluster.list(LEASES, namespace="kube-node-lease")).items:
        with suppress(NotFound):
            await cluster.delete(LEASES, one.metadata.name, namespace="kube-node-lease")
