"""Who gives way to a pod of a higher priority: on random nodes we choose the node and the pods that kube-scheduler chooses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import pytest

from kubetide.cluster import HttpCluster
from kubetide.embedded.controllers.scheduling.preemption import NoCandidates, Preemption, find_preemption
from kubetide.embedded.controllers.scheduling.why_nowhere import nobody_preempted, refused
from kubetide.objects.kinds import NODES, PDBS, PODS, PRIORITY_CLASSES
from kubetide.objects.meta import key_of
from kubetide.objects.pod import pod_condition
from kubetide.ports.errors import AlreadyExists
from kubetide.runtime.timing.clock import run_real
from kubetide.scheduling import Snapshot, classify
from kubetide.testing import builders
from kubetide.units.time import milliseconds, seconds

pytestmark = pytest.mark.slow

PRIORITIES = {"low": -5, "mid": 10, "high": 20, "urgent": 100}
TOWNS = 40


async def create_priorities(cluster):
    """Create the classes, of which another test may have made some on the same plane, and one that preempts nobody."""
    bodies = [builders.priority_class(name, value) for name, value in PRIORITIES.items()]
    polite = builders.priority_class("polite", 10) | {"preemptionPolicy": "Never"}
    for body in (*bodies, polite):
        with suppress(AlreadyExists):
            await cluster.create(PRIORITY_CLASSES, body)


def test_the_same_pods_give_way(patient):
    """Towns of three nodes, with pods of several priorities and sizes, some under a budget that lets none go."""

    async def main(clock):
        async with HttpCluster(patient.connection, clock) as cluster:
            await create_priorities(cluster)
            return await asyncio.gather(*(Town(cluster, clock, seed).compare() for seed in range(TOWNS)))

    found = run_real(main)
    assert [one for one in found if one[0] != one[1]] == []
    assert len({len(theirs[1]) for theirs, _ in found}) > 2
    assert any(name.endswith("kept") for theirs, _ in found for name in theirs[1])


@pytest.mark.parametrize("asks", ["mid", "polite"])
def test_the_same_is_said_where_nobody_gives_way(patient, asks):
    """Nodes with and without pods of a lower priority, too small ones and closed ones, in one sentence."""

    async def main(clock):
        async with HttpCluster(patient.connection, clock) as cluster:
            town = Town(cluster, clock, f"mute-{asks}")
            await create_priorities(cluster)
            taint = [{"key": "town", "effect": "NoSchedule"}]
            for number, (cpu, there) in enumerate(
                (("6", ("high", "low")), ("6", ("high", "low", "low")), ("6", ("high",)), ("2", ("low",)))
            ):
                for closed in (False, True):
                    node = f"{town.name}-{number}{'-closed' if closed else ''}"
                    body = builders.node(node, cpu=cpu, labels={"town": town.name})
                    if closed:
                        body["spec"] = {"taints": taint}
                    await cluster.create(NODES, body)
                    await town.until_open(node, taints=int(closed))
                    for at, priority in enumerate(there):
                        await town.place(node, at, 3 if priority == "high" else 1, priority)
            await town.seen()
            snapshot, pods = Snapshot(), {}
            for node in (await cluster.list(NODES)).items:
                snapshot.set_node(node)
            for pod in (await cluster.list(PODS)).items:
                if pod.spec.node_name:
                    pods[key_of(pod)] = pod
                    snapshot.add_pod(pod, pod.spec.node_name)
            body = builders.pod(f"{town.name}-asks", cpu="5", extra={"spec": town.selected(asks)})
            made = await cluster.create(PODS, body, namespace="default")
            why = refused(snapshot, classify(made), fits=False)
            found = find_preemption(snapshot, classify(made), PRIORITIES["mid"], pods=pods, budgets=())
            assert isinstance(found, NoCandidates)
            ours = "not eligible due to preemptionPolicy=Never."
            if asks != "polite":
                ours = nobody_preempted(why, found.reasons)
                assert len(found.reasons) == 2, found
            for _ in range(400):
                now = await cluster.get(PODS, made.metadata.name, namespace="default")
                condition = pod_condition(now, "PodScheduled")
                if condition is not None:
                    return why.with_preemption(ours), condition.message
                await clock.sleep(milliseconds(50))
            pytest.fail("nothing is said")

    ours, theirs = run_real(main)
    assert ours == theirs


class Town:
    """Three nodes of their own for the pods of one case."""

    def __init__(self, cluster, clock, seed):
        self.cluster, self.clock, self.draw = cluster, clock, Random(seed)
        self.name = f"town-{seed}"

    async def compare(self):
        """Return what kube-scheduler does and what we say, each as node and victims."""
        await self.fill()
        await self.seen()
        snapshot, pods = Snapshot(), {}
        for node in (await self.cluster.list(NODES, labels=f"town={self.name}")).items:
            snapshot.set_node(node)
        for pod in (await self.cluster.list(PODS, namespace="default", labels=f"town={self.name}")).items:
            pods[key_of(pod)] = pod
            snapshot.add_pod(pod, pod.spec.node_name)
        budgets = (await self.cluster.list(PDBS, namespace="default", labels=f"town={self.name}")).items
        urgent = builders.pod(
            f"{self.name}-urgent",
            cpu=self.draw.choice(("3", "5", "6")),
            extra={"spec": self.selected("urgent")},
        )
        made = await self.cluster.create(PODS, urgent, namespace="default")
        ours = find_preemption(snapshot, classify(made), PRIORITIES["urgent"], pods=pods, budgets=budgets)
        theirs = await self.outcome(urgent["metadata"]["name"], pods)
        assert isinstance(ours, Preemption), ours
        return theirs, (ours.node, sorted(pod.metadata.name for pod in ours.victims))

    def selected(self, priority):
        return {"nodeSelector": {"town": self.name}, "priorityClassName": priority}

    async def fill(self):
        """Make nodes that no further pod of 3 CPUs fits on."""
        budget = builders.pdb(f"{self.name}-budget", {"kept": self.name}, max_unavailable=0)
        budget["metadata"]["labels"] = {"town": self.name}
        await self.cluster.create(PDBS, budget, namespace="default")
        for number in range(3):
            node = f"{self.name}-n{number}"
            await self.cluster.create(NODES, builders.node(node, cpu="6", labels={"town": self.name}))
            await self.until_open(node)
            left, at = 6, 0
            while left >= 3:
                cpu = self.draw.choice((1, 2, 3))
                await self.place(node, at, cpu)
                left, at = left - cpu, at + 1

    async def seen(self):
        """Return when kube-scheduler knows the pods as they are now: it has bound one that was made last."""
        name = f"{self.name}-probe"
        body = builders.pod(
            name, cpu="1m", labels={"town": self.name}, extra={"spec": self.selected("urgent")}
        )
        await self.cluster.create(PODS, body, namespace="default")
        for _ in range(600):
            if (await self.cluster.get(PODS, name, namespace="default")).spec.node_name:
                return
            await self.clock.sleep(milliseconds(50))
        pytest.fail(f"{name} is not bound")

    async def until_open(self, node, taints=0):
        for _ in range(200):
            if len((await self.cluster.get(NODES, node)).spec.taints or ()) == taints:
                return
            await self.clock.sleep(milliseconds(50))
        pytest.fail(f"{node} stays closed")

    async def place(self, node, at, cpu, priority=None):
        kept = self.draw.random() < 0.4
        name = f"{node}-p{at}{'-kept' if kept else ''}"
        labels = {"town": self.name} | ({"kept": self.name} if kept else {})
        priority = priority or self.draw.choice(("low", "low", "mid", "high"))
        spec = {"nodeName": node, "priorityClassName": priority}
        body = builders.pod(name, cpu=str(cpu), labels=labels, extra={"spec": spec})
        await self.cluster.create(PODS, body, namespace="default")
        started = f"2026-03-02T00:{self.draw.randrange(60):02}:{self.draw.randrange(60):02}Z"
        status = {"status": {"phase": "Running", "startTime": started}}
        await self.cluster.patch(PODS, name, status, namespace="default", subresource="status")

    async def outcome(self, name, pods):
        """Return the node that the pod is nominated to, and the pods that were preempted."""
        for _ in range(400):
            node = (await self.cluster.get(PODS, name, namespace="default")).status.nominated_node_name
            gone = [key for key in pods if await self.is_preempted(key)] if node else []
            # They are marked one after another.
            while gone:
                await self.clock.sleep(seconds(2))
                before, gone = gone, [key for key in pods if await self.is_preempted(key)]
                if gone == before:
                    return node, sorted(key[1] for key in gone)
            await self.clock.sleep(milliseconds(50))
        pytest.fail(f"{name} preempted nobody")

    async def is_preempted(self, key):
        condition = pod_condition(await self.cluster.get(PODS, key[1], namespace=key[0]), "DisruptionTarget")
        return condition is not None and condition.reason == "PreemptionByScheduler"
