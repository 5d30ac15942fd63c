"""The clusters that timelines are played on: the embedded one in virtual time, and a real control plane.

On both the kubelets are the embedded ones, with the same fixed times: a pod runs 0.8 s after it is bound, is ready 0.7 s later
and ends 1.2 s after its deletion; so statuses of pods are driven by the same program, and what differs is the control plane.
No sum of a few of them is a whole second, so that nothing happens just when a controller that works once in a second does. A run begins at a whole second of the clock, as many times in statuses are whole seconds.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress

from tests.timelines.facts import Fact
from tests.timelines.observer import Noted, Observer
from tests.timelines.steps import place, play_all
from tests.timelines.timeline import NAMESPACE, Timeline

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud.joining import make_ready
from kubetide.embedded.draws import NO_DELAY, fixed
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import NAMESPACES, NODES
from kubetide.objects.minor_version import OLDEST
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.control_plane import ControlPlane
from kubetide.units.time import Duration, Instant, after, milliseconds, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
TIMES = PodTimes(
    pull=NO_DELAY,
    start=fixed(milliseconds(800)),
    ready=fixed(milliseconds(700)),
    work=fixed(milliseconds(2300)),
    stop=fixed(milliseconds(1200)),
)
NOT_READY = "node.kubernetes.io/not-ready"
_SECOND = seconds(1)


class PlayedStage:
    """What both have in common."""

    def __init__(self, cluster: Cluster, clock: Clock, namespace: str, pool: KubeletPool) -> None:
        self.cluster, self.clock, self.namespace, self.pool = cluster, clock, namespace, pool
        self.observer = Observer(cluster, clock, namespace)

    def name_of(self, label: str) -> str:
        return self.observer.labels.names.get(label, label)

    def note(self, fact: str) -> None:
        self.observer.note(Fact("Step", "", fact))

    def pods_on(self, node: str) -> list[str]:
        pods = self.observer.pods.objects.values()
        return sorted(self.observer.labels.of(pod) for pod in pods if pod.spec.node_name == node)

    async def sleep(self, pause: Duration) -> None:
        await self.clock.sleep(pause)

    async def play(self, timeline: Timeline) -> list[Noted]:
        """Return what became so, by the end of a timeline."""
        async with AsyncExitStack() as stack:
            for informer in self.observer.informers:
                await stack.enter_async_context(informer.running())
            for informer in self.observer.informers:
                await informer.synced()
            await self.prepare(timeline)
            now = self.clock.now()
            start = self.observer.start = Instant(now + 2 * _SECOND - now % _SECOND)

            async def until(at: float) -> None:
                due = after(start, milliseconds(round(at * 1000)))
                await self.clock.sleep(Duration(max(due - self.clock.now(), 0)))

            await until(0)
            steps = asyncio.create_task(play_all(self, timeline.steps, until))
            await until(timeline.lasts + 0.5)
            await steps
            return self.observer.facts(tells_apart=timeline.tells_apart, lasts=timeline.lasts)

    async def prepare(self, timeline: Timeline) -> None:
        """Make what is there before, and return when all of it has settled."""
        for kind, body in timeline.before:
            with suppress(AlreadyExists):
                await self.cluster.create(kind, body, **place(kind, self))
        nodes = [body["metadata"]["name"] for kind, body in timeline.before if kind is NODES]
        for name in nodes:
            while any(
                one.key == NOT_READY for one in (await self.cluster.get(NODES, name)).spec.taints or ()
            ):
                await self.clock.sleep(milliseconds(50))


class EmbeddedStage(PlayedStage):
    """The embedded control plane and kubelets, as a run of a scenario has them."""

    grace = 0
    """Seconds until a silent node is taken for lost."""

    @classmethod
    async def run(cls, timeline: Timeline, clock: Clock) -> list[Noted]:
        """Return what a timeline comes to on a cluster of its own."""
        store = Store()
        cluster = EmbeddedCluster(store, clock, seed=5)
        plane = ControlPlane(cluster, clock, seed=5, store=store, writes_events=False, minor=OLDEST)
        await cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(informer.run()) for informer in plane.informers]
            for informer in plane.informers:
                await informer.synced()
            pool = _pool(cluster, clock, plane)
            parts = [pool.run(), *plane.controllers("default")]
            tasks += [group.create_task(part) for part in parts]
            stage = cls(cluster, clock, NAMESPACE, pool)
            stage.grace = timeline.grace or 0
            found = await stage.play(timeline)
            for task in tasks:
                task.cancel()
        return found

    async def make_ready(self, node: str) -> None:
        await make_ready(self.cluster, node, self.clock.now())

    async def silence(self, node: str) -> None:
        # A node of the embedded cluster is lost at the moment at which it is made to fail.
        await self.clock.sleep(seconds(self.grace))
        await self.pool.fail_node(node)

    async def resume(self, node: str) -> None:
        await self.pool.recover_node(node)


def play_embedded(timeline: Timeline) -> list[Noted]:
    """Return what a timeline comes to on the embedded cluster."""

    async def main(clock: Clock) -> list[Noted]:
        return await EmbeddedStage.run(timeline, clock)

    return run_virtual(main, start=START)


def _pool(cluster: Cluster, clock: Clock, plane: ControlPlane) -> KubeletPool:
    return KubeletPool(cluster, clock, seed=5, times=TIMES, pods=plane.pods, nodes=plane.nodes)
