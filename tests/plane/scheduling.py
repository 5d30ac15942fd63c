"""Our verdicts beside kube-scheduler's: random pods, one after another, on a real control plane.

    python -m tests.plane.scheduling --pods 2000

Nodes and pods are drawn from a seed. Of each pod it is known where kube-scheduler has bound it, or why
it fits nowhere; a snapshot that holds what the cluster held a moment before must allow that node, or
say the same words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from msgspec import structs
from tests.plane import random_pods
from tests.plane.random_pods import CHANGE, Json
from tests.plane.random_volumes import RandomVolumes
from tests.plane.running import Plane, running_plane

from kubetide.cluster import HttpCluster
from kubetide.embedded.controllers import VolumeCache
from kubetide.embedded.controllers.scheduling.why_nowhere import nobody_preempted, refused
from kubetide.objects.kinds import NAMESPACES, NODES, PODS
from kubetide.objects.meta import Key
from kubetide.objects.minor_version import minor_of
from kubetide.objects.node import Namespace, Node
from kubetide.objects.pod import Pod, pod_condition
from kubetide.ports.clock import Clock
from kubetide.runtime.timing.clock import run_real
from kubetide.scheduling import (
    Int64Vector,
    PodClass,
    Snapshot,
    classify,
    facts_of_scheduler,
)
from kubetide.scheduling.pods.volume_use import claims_of
from kubetide.scheduling.scoring import DEFAULT, PROFILES, ScoredSnapshot, incoming
from kubetide.units.time import Duration, seconds
from kubetide.watching import Informer

PATIENCE = ("--node-monitor-grace-period=24h",)
"""For kube-controller-manager: no node is missed, however long it is silent."""

_PATIENCE = seconds(300)
_SECOND_LOOK = seconds(8)
_WITH_CLAIMS = 0.3
_WITH_PREFERENCES = 0.4
_CORDON = "node.kubernetes.io/unschedulable"
_NOT_READY = "node.kubernetes.io/not-ready"


@dataclass
class Found:
    """The result of a comparison.

    Attributes:
        bound, refused: How many pods.
        with_claims: How many of the bound ones have claims.
        chosen: For how many of the bound ones some node that takes them has a lower score than others.
        reasons: How many refusals name each reason.
        disagreements: One text each: the pod, what kube-scheduler did, what we say.
    """

    bound: int = 0
    refused: int = 0
    with_claims: int = 0
    chosen: int = 0
    changes: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.bound} bound ({self.with_claims} with claims, {self.chosen} by score), {self.refused} refused, {self.changes} changes of nodes"
        ]
        lines += [f"  {number:5} {reason}" for reason, number in self.reasons.most_common()]
        lines += [f"{len(self.disagreements)} disagreements", *self.disagreements]
        return "\n".join(lines)


class Judged(NamedTuple):
    """Our verdict on a pod: the nodes that take it and the best of them, or the words and reasons of its refusal."""

    nodes: frozenset[str]
    best: frozenset[str]
    words: str
    reasons: tuple[str, ...]


class Comparison:
    """A cluster as it is watched, the snapshot of it, and what came out so far."""

    def __init__(
        self, cluster: HttpCluster, clock: Clock, seed: int, judged: Callable[[Pod], PodClass]
    ) -> None:
        self.cluster, self.clock, self.judged = cluster, clock, judged
        self.rng, self.tastes = Random(seed), Random(seed + 1)
        self.found = Found()
        self.snapshot = ScoredSnapshot()
        self.pods: Informer[Pod] = Informer(cluster, PODS, clock)
        self.nodes: Informer[Node] = Informer(cluster, NODES, clock)
        self.namespaces: Informer[Namespace] = Informer(cluster, NAMESPACES, clock)
        self.cache = VolumeCache(cluster, clock)
        self.volumes = RandomVolumes(cluster, Random(seed), self.cache, self.nodes)
        self._stirred = asyncio.Event()
        for informer in (self.pods, self.nodes, self.namespaces):
            informer.on_change(lambda *_: self._stirred.set())
        self.cache.follow(lambda *_: self._stirred.set())

    async def until(self, what: str, holds, patience: Duration = _PATIENCE) -> None:
        """Wait for a change after which something holds. Raises TimeoutError naming it."""
        try:
            async with asyncio.timeout(patience / 1e9):
                while not holds():
                    self._stirred.clear()
                    await self.volumes.provision()
                    if not holds():
                        await self._stirred.wait()
        except TimeoutError:
            raise TimeoutError(f"waited in vain: {what}") from None

    async def clear(self) -> None:
        """Take away what would be in the way of the next comparison."""
        for key in list(self.pods.objects):
            await self.remove(key)
        for _, name in list(self.nodes.objects):
            await self.cluster.delete(NODES, name)
        await self.until("no node is left", lambda: not self.nodes.objects)
        await self.volumes.clear()

    async def settle(self, count: int) -> None:
        """Make namespaces and nodes, and return when kube-scheduler knows all of them."""
        for name, labels in random_pods.NAMESPACES.items():
            if ("", name) not in self.namespaces.objects:
                await self.cluster.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        for index in range(count):
            await self.cluster.create(NODES, random_pods.node(self.rng, index))
        await self.until("nodes are there", lambda: len(self.nodes.objects) == count)
        for _, name in sorted(self.nodes.objects):
            await self.until("taints follow", lambda name=name: self._is_settled(name))
            self.snapshot.set_node(self.nodes.objects["", name])
        labels = {name: one.metadata.labels or {} for (_, name), one in self.namespaces.objects.items()}
        version = json.loads(await self.cluster.get_raw("/version"))["gitVersion"]
        facts = facts_of_scheduler(minor_of(version))
        self.snapshot.set_facts(structs.replace(facts, namespaces=labels))
        await self.volumes.make()
        await self.until("volumes are there", self.volumes.settled)
        for _, name in sorted(self.nodes.objects):
            await self._seen(name)

    def _is_settled(self, name: str) -> bool:
        """Whether the node's taints are those that Kubernetes derives from its state."""
        node = self.nodes.objects["", name]
        keys = {taint.key for taint in node.spec.taints or ()}
        return _NOT_READY not in keys and (_CORDON in keys) == node.spec.unschedulable

    async def _seen(self, name: str) -> None:
        """Return when kube-scheduler knows the node as it is now: it has placed a pod by a label set last."""
        number = str(self.found.changes)
        self.found.changes += 1
        patch = {"metadata": {"labels": {CHANGE: number}}}
        await self.cluster.patch(NODES, name, patch)
        probe = {
            "metadata": {"name": f"probe-{number}", "namespace": "yard"},
            "spec": {
                "containers": [{"name": "app", "image": "registry.test/app:1"}],
                "nodeSelector": {CHANGE: number},
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 0,
            },
        }
        pod = await self.create(probe)
        key = pod.metadata.namespace, pod.metadata.name
        await self.until("the probe is bound", lambda: self._node_of(key))
        await self.remove(key)
        self.snapshot.set_node(self.nodes.objects["", name])

    def _node_of(self, key: Key) -> str:
        pod = self.pods.objects.get(key)
        return "" if pod is None else pod.spec.node_name

    async def create(self, body: Json) -> Pod:
        return await self.cluster.create(PODS, body, namespace=body["metadata"]["namespace"])

    async def remove(self, key: Key) -> None:
        """Take a pod away at once, also from the snapshot."""
        await self.cluster.delete(PODS, key[1], namespace=key[0], grace_period_s=0)
        await self.until("the pod is deleted", lambda: key not in self.pods.objects)
        self.snapshot.remove_pod(key)

    async def play(self, index: int) -> None:
        """Make one pod, compare, and now and then change something."""
        body = random_pods.pod(self.rng, index)
        namespace = body["metadata"]["namespace"]
        if self.tastes.random() < _WITH_PREFERENCES:
            random_pods.prefer(self.tastes, body["spec"], body["metadata"]["labels"]["app"])
        if self.rng.random() < _WITH_CLAIMS:
            volumes, claims = self.volumes.draw(index, namespace)
            body["spec"]["volumes"] = [*body["spec"].get("volumes", ()), *volumes]
            await self.volumes.add(claims, namespace)
            await self.until("its claims are seen", lambda: self.volumes.are_seen(claims, namespace))
        self.snapshot.set_volumes(self.cache.objects.volumes())
        pod = await self.create(body)
        key = pod.metadata.namespace, pod.metadata.name
        # Evaluated before anything of the pod is observed: its outcome changes volumes.
        ours = self._judge(pod)
        await self._verdict_on(key, ours)
        seen = self.pods.objects[key]
        self._compare(ours, seen)
        if seen.spec.node_name:
            self.snapshot.add_pod(seen, seen.spec.node_name)
            names = [(namespace, use.name) for use in claims_of(seen)]
            await self.until("its claims are bound", lambda: self.volumes.are_bound(names))
        else:
            await self.remove(key)
        await self._stir()

    def _judge(self, pod: Pod) -> Judged:
        pod_class = self.judged(pod)
        fits = self.snapshot.feasible(pod_class)
        named = [name for name, fit in zip(self.snapshot.node_names, fits, strict=True) if fit]
        if named:
            return Judged(frozenset(named), self._best(pod, pod_class, np.flatnonzero(fits)), "", ())
        words = said(self.snapshot, pod_class)
        return Judged(frozenset(), frozenset(), words, tuple(self.snapshot.refusals(pod_class)))

    def _best(self, pod: Pod, pod_class: PodClass, rows: Int64Vector) -> frozenset[str]:
        """The nodes with the highest score."""
        given = incoming(
            pod, pod_class, None, images=bool(self.snapshot.images), minor=self.snapshot.facts.minor
        )
        scores = PROFILES[DEFAULT].total(given, self.snapshot, rows)
        return frozenset(self.snapshot.node_names[row] for row in rows[scores == scores.max()].tolist())

    async def _verdict_on(self, key: Key, ours: Judged) -> None:
        """Wait until kube-scheduler has evaluated a pod.

        It receives claims apart from pods: a pod with claims that it evaluates otherwise than we
        do gets some time, as it is tried again when a claim comes.
        """
        await self.until(f"{key} is judged", lambda: _verdict(self.pods.objects.get(key)))
        first = self.pods.objects[key]
        while claims_of(first) and not first.spec.node_name and _verdict(first) != ours.words:
            await self.volumes.provision()
            try:
                await self.until("it is judged again", self._differs(key, _verdict(first)), _SECOND_LOOK)
            except TimeoutError:
                return
            first = self.pods.objects[key]

    def _differs(self, key: Key, verdict: str) -> Callable[[], bool]:
        return lambda: _verdict(self.pods.objects.get(key)) not in {"", verdict}

    def _compare(self, ours: Judged, seen: Pod) -> None:
        name = f"{seen.metadata.namespace}/{seen.metadata.name}"
        if seen.spec.node_name:
            self.found.bound += 1
            self.found.with_claims += bool(claims_of(seen))
            if seen.spec.node_name not in ours.nodes:
                text = f"{name}: bound to {seen.spec.node_name}, we say {ours}"
                self.found.disagreements.append(text)
            elif seen.spec.node_name not in ours.best:
                text = f"{name}: bound to {seen.spec.node_name}, the best are {sorted(ours.best)}"
                self.found.disagreements.append(text)
            self.found.chosen += len(ours.best) < len(ours.nodes)
            return
        self.found.refused += 1
        self.found.reasons.update(ours.reasons)
        if _verdict(seen) != ours.words:
            text = f"{name}:\n    they {_verdict(seen)}\n    we   {ours.words or sorted(ours.nodes)}"
            self.found.disagreements.append(text)

    async def _stir(self) -> None:
        """Take a pod away, let one linger, or change a node."""
        drawn = self.rng.random()
        placed = sorted(key for key, pod in self.pods.objects.items() if pod.spec.node_name)
        if drawn < 0.15 and placed:
            await self.remove(self.rng.choice(placed))
        elif drawn < 0.2 and placed:
            await self._linger(self.rng.choice(placed))
        elif drawn < 0.24:
            await self._change(self.rng.choice(sorted(self.nodes.objects))[1])

    async def _linger(self, key: Key) -> None:
        """Delete a pod that stays, as no kubelet ends it."""
        await self.cluster.delete(PODS, key[1], namespace=key[0], grace_period_s=3600)
        await self.until("it is on its way out", lambda: self.pods.objects[key].metadata.deletion_timestamp)
        self.snapshot.add_pod(self.pods.objects[key], self.pods.objects[key].spec.node_name)

    async def _change(self, name: str) -> None:
        if len(self.snapshot.pods_on(name)) >= self.snapshot.allocatable["pods"][self.snapshot.row(name)]:
            return  # the probe would find no place
        known = await self.cluster.get(NODES.untyped, name)
        patched = await self.cluster.patch(NODES, name, random_pods.changed_node(self.rng, known))
        version = patched.metadata.resource_version
        await self.until(
            "the change is seen",
            lambda: (
                int(self.nodes.objects["", name].metadata.resource_version) >= int(version)
                and self._is_settled(name)
            ),
        )
        await self._seen(name)


def _verdict(pod: Pod | None) -> str:
    """A pod's node, or why it has none; empty as long as nobody has tried."""
    if pod is None:
        return ""
    condition = pod_condition(pod, "PodScheduled")
    if pod.spec.node_name or condition is None or condition.status != "False":
        return pod.spec.node_name
    return (
        condition.message
        if condition.reason == "Unschedulable"
        else f"{condition.reason}: {condition.message}"
    )


def said(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Return the message of FailedScheduling where all pods are of one priority."""
    why = refused(snapshot, pod_class, fits=False)
    assert why is not None, "it does not fit"
    return why.with_preemption(nobody_preempted(why) if why.preempts else "")


@asynccontextmanager
async def watched(plane: Plane, clock: Clock, seed: int, judged: Callable[[Pod], PodClass]):
    """Yield a comparison with up-to-date caches, and leave the plane without pods and nodes."""
    async with HttpCluster(plane.connection, clock) as cluster, asyncio.TaskGroup() as group:
        comparison = Comparison(cluster, clock, seed, judged)
        informers = (comparison.pods, comparison.nodes, comparison.namespaces, comparison.cache)
        tasks = [group.create_task(one.run()) for one in informers]
        for one in informers:
            await one.synced()
        yield comparison
        await comparison.clear()
        for task in tasks:
            task.cancel()


def compare(
    plane: Plane,
    *,
    nodes: int,
    pods: int,
    seed: int,
    judged: Callable[[Pod], PodClass] = classify,
    reports: Callable[[Found, int], None] = lambda found, index: None,
) -> Found:
    """Play that many pods on that many nodes of a plane that has none.

    Args:
        plane: Must not miss nodes that nobody reports for: ``PATIENCE`` for its controllers.
        nodes, pods: How many.
        seed: Of everything that is drawn.
        judged: What our side makes of a pod.
        reports: Called after each pod that was compared.
    """

    async def run(clock: Clock) -> Found:
        async with watched(plane, clock, seed, judged) as comparison:
            await comparison.settle(nodes)
            for index in range(pods):
                await comparison.play(index)
                reports(comparison.found, index)
            return comparison.found

    return run_real(run)


def main() -> int:
    """Print the result of a comparison; 1 when it found a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    def reports(found: Found, index: int) -> None:
        if index % 100 == 99:
            print(
                f"{index + 1} pods: {found.bound} bound, {len(found.disagreements)} disagreements",
                file=sys.stderr,
            )

    with (
        tempfile.TemporaryDirectory() as folder,
        running_plane(Path(folder), manager_flags=PATIENCE) as plane,
    ):
        found = compare(plane, nodes=given.nodes, pods=given.pods, seed=given.seed, reports=reports)
    print(found)
    return 1 if found.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
