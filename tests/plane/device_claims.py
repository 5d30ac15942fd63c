"""Our verdicts and devices beside kube-scheduler's: random claims for devices, one pod after another.

    python -m tests.plane.device_claims --pods 300

Each pod is held by a gate until its claims are there; then it is said which nodes would take it, and which
devices it would be given on each, and the gate is taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec
from tests.plane.running import Plane, running_plane
from tests.plane.scheduling import PATIENCE, said

from kubetide.cluster import HttpCluster
from kubetide.embedded.controllers import DeviceCache
from kubetide.embedded.controllers.scheduling.why_nowhere import failure
from kubetide.objects.kinds import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from kubetide.objects.pod import pod_condition
from kubetide.runtime.timing.clock import run_real
from kubetide.scheduling import ERROR, Snapshot, classify
from kubetide.scheduling.devices.allocation import plan_claims
from kubetide.scheduling.pods.device_use import claims_of_pod
from kubetide.testing import builders
from kubetide.units.time import seconds
from kubetide.watching import Informer

_PATIENCE = seconds(300)
_FIRST_LOOK = seconds(30)
_SECOND_LOOK = seconds(5)
DRIVERS = ("gpu.test", "nic.test")
SELECTORS = (
    'device.driver == "gpu.test"',
    'device.attributes["gpu.test"].model == "a"',
    'device.capacity["gpu.test"].memory.compareTo(quantity("40Gi")) >= 0',
    "device.nothing",
)


@dataclass
class Found:
    """The result of a comparison; ``disagreements`` is one text each."""

    bound: int = 0
    refused: int = 0
    devices: int = 0
    disagreements: list[str] = field(default_factory=list)

    def __str__(self):
        lines = [f"{self.bound} bound with {self.devices} devices, {self.refused} refused"]
        return "\n".join([*lines, f"{len(self.disagreements)} disagreements", *self.disagreements])


def a_slice(rng, node, driver):
    """The slice that a driver publishes for a node: up to four devices, some with a taint."""
    devices = []
    for number in range(rng.randint(1, 4)):
        device = {
            "name": f"d{number}",
            "attributes": {"model": {"string": rng.choice("ab")}, "numa": {"int": rng.randint(0, 1)}},
            "capacity": {"memory": {"value": rng.choice(("16Gi", "40Gi", "80Gi"))}},
        }
        if rng.random() < 0.1:
            device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        devices.append(device)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "pool": pool, "nodeName": node, "devices": devices},
    }


def asked(rng):
    """What one request needs of a class."""
    request = {"deviceClassName": rng.choice(("any", "any", "gpu", "gpu", "nic", "gpu"))}
    if rng.random() < 0.15:
        request["allocationMode"] = "All"
    else:
        request["count"] = rng.choice((1, 1, 1, 2, 3))
    if rng.random() < 0.4:
        request["selectors"] = [{"cel": {"expression": rng.choice(SELECTORS[:3])}}]
    if rng.random() < 0.2:
        request["tolerations"] = [{"operator": "Exists"}]
    return request


def claim_spec(rng):
    requests = []
    for number in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.2:
            alternatives = [{"name": f"a{at}", **asked(rng)} for at in range(2)]
            requests.append({"name": f"r{number}", "firstAvailable": alternatives})
        else:
            requests.append({"name": f"r{number}", "exactly": asked(rng)})
    devices = {"requests": requests}
    if rng.random() < 0.2:
        constraint = rng.choice(("matchAttribute", "distinctAttribute"))
        devices["constraints"] = [{constraint: "gpu.test/numa"}]
    return {"devices": devices}


def words_of(snapshot, pod_class):
    """Return what FailedScheduling may say of a pod with claims: which of several failures it reports is chance."""
    failures = {
        refusal.reasons[0]
        for name in snapshot.node_names
        if (refusal := snapshot.first_refusal(pod_class, name)) is not None and refusal.code == ERROR
    }
    return failures or {said(snapshot, pod_class)}


class Comparison:
    """A cluster as it is watched, and the snapshot of it."""

    def __init__(self, cluster, clock, seed):
        self.cluster, self.rng = cluster, Random(seed)
        self.found, self.snapshot = Found(), Snapshot()
        self.pods, self.nodes = Informer(cluster, PODS, clock), Informer(cluster, NODES, clock)
        self.cache = DeviceCache(cluster, clock)
        self._stirred = asyncio.Event()
        for informer in (self.pods, self.nodes):
            informer.on_change(lambda *_: self._stirred.set())
        self.cache.follow(lambda *_: self._stirred.set())

    async def until(self, what, holds, patience=_PATIENCE):
        """Wait for a change after which something holds. Raises TimeoutError naming it."""
        try:
            async with asyncio.timeout(patience / 1e9):
                while not holds():
                    self._stirred.clear()
                    await self._stirred.wait()
        except TimeoutError:
            raise TimeoutError(f"waited in vain: {what}") from None

    async def settle(self, count):
        """Make classes, nodes and slices."""
        classes = {"any": (), "gpu": SELECTORS[:1], "nic": ('device.driver == "nic.test"',)}
        for name, expressions in classes.items():
            selectors = [{"cel": {"expression": one}} for one in expressions]
            await self.cluster.create(
                DEVICE_CLASSES, {"metadata": {"name": name}, "spec": {"selectors": selectors}}
            )
        for number in range(count):
            name = f"n{number}"
            await self.cluster.create(NODES, builders.node(name, cpu="16"))
            for driver in DRIVERS:
                if self.rng.random() < 0.7:
                    await self.cluster.create(RESOURCE_SLICES, a_slice(self.rng, name, driver))
        await self.until("nodes are ready", lambda: self._are_ready(count))
        for node in self.nodes.objects.values():
            self.snapshot.set_node(node)

    def _are_ready(self, count):
        nodes = self.nodes.objects.values()
        return len(nodes) == count and not any(node.spec.taints for node in nodes)

    async def play(self, index):
        """Make a pod with claims, compare, and now and then take one away."""
        key = ("default", f"p{index:04}")
        await self._make(index)
        await self.until("its claims are there", lambda: self._is_prepared(key))
        pod = self.pods.objects[key]
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=None))
        self.snapshot.set_devices(self.cache.objects.devices())
        pod_class = classify(pod)
        names = self.snapshot.node_names
        fits = self.snapshot.feasible(pod_class).tolist()
        ours = {name: self._plan(pod_class, key, name) for name, fit in zip(names, fits, strict=True) if fit}
        if failure(self.snapshot, pod_class):
            ours = {}  # of so few nodes all are looked at, and one that fails ends the attempt
        words = {""} if ours else words_of(self.snapshot, pod_class)
        await self.cluster.patch(PODS, key[1], {"spec": {"schedulingGates": None}}, namespace=key[0])
        await self._judged(key)
        if self._verdict(key) not in words and not self._node_of(key):
            # It receives claims and slices apart from pods.
            try:
                first = self._verdict(key)
                await self.until("it is judged again", lambda: self._verdict(key) != first, _SECOND_LOOK)
            except TimeoutError:
                pass
        await self._compare(key, ours, words)
        if self.pods.objects and self.rng.random() < 0.35:
            await self._remove(self.rng.choice(sorted(self.pods.objects)))

    async def _judged(self, key):
        """Wait for kube-scheduler's verdict.

        It receives claims apart from pods: a gate that it sees removed before the claim is there leaves the
        pod waiting, now and then until it looks at all waiting pods again (5 minutes). A change of the pod
        makes it look at once.
        """
        try:
            await self.until("a first look", lambda: self._verdict(key), _FIRST_LOOK)
        except TimeoutError:
            touched = {"metadata": {"labels": {"looked-at": "again"}}}
            await self.cluster.patch(PODS, key[1], touched, namespace=key[0])
            await self.until(f"{key} is judged", lambda: self._verdict(key))

    def _plan(self, pod_class, key, node):
        planned = plan_claims(
            self.snapshot.devices, pod_class.devices, key, self.snapshot.node(node), lambda what: what
        )
        return {one.key: one.allocation for one in planned}

    async def _make(self, index):
        name, where = f"p{index:04}", {"namespace": "default"}
        claims = []
        for number in range(self.rng.choice((1, 1, 2))):
            kind = self.rng.random()
            shared = sorted(one for _, one in self.cache.of(RESOURCE_CLAIMS).objects if one.startswith("s"))
            if kind < 0.25 and shared:
                claims.append({"name": f"c{number}", "resourceClaimName": self.rng.choice(shared)})
                continue
            # Of two templates kube-controller-manager 1.36 now and then notes the claims in turns, each in the place of
            # the other, a hundred times a second and for ever: such a pod is never judged.
            by_name = kind < 0.6 or any("resourceClaimTemplateName" in one for one in claims)
            made = f"{'s' if by_name else 't'}{index}-{number}"
            spec = claim_spec(self.rng)
            if by_name:
                await self.cluster.create(
                    RESOURCE_CLAIMS, {"metadata": {"name": made}, "spec": spec}, **where
                )
                claims.append({"name": f"c{number}", "resourceClaimName": made})
            else:
                body = {"metadata": {"name": made}, "spec": {"spec": spec}}
                await self.cluster.create(RESOURCE_CLAIM_TEMPLATES, body, **where)
                claims.append({"name": f"c{number}", "resourceClaimTemplateName": made})
        if (
            len(claims) == 2
            and claims[0].get("resourceClaimName") == claims[1].get("resourceClaimName") is not None
        ):
            claims.pop()
        spec = {"resourceClaims": claims, "schedulingGates": [{"name": "test/wait"}]}
        await self.cluster.create(PODS, builders.pod(name, extra={"spec": spec}), **where)

    def _is_prepared(self, key):
        pod = self.pods.objects.get(key)
        if pod is None:
            return False
        claims = self.cache.of(RESOURCE_CLAIMS).objects
        return all(not one.error and (one.namespace, one.name) in claims for one in claims_of_pod(pod))

    def _node_of(self, key):
        return self.pods.objects[key].spec.node_name

    def _verdict(self, key):
        condition = pod_condition(self.pods.objects[key], "PodScheduled")
        if self._node_of(key):
            return self._node_of(key)
        if condition is None or condition.reason == "SchedulingGated":
            return ""
        return condition.message

    async def _compare(self, key, ours, words):
        node = self._node_of(key)
        if not node:
            self.found.refused += 1
            if self._verdict(key) not in words:
                text = f"{key}:\n    they {self._verdict(key)}\n    we   {sorted(ours) or sorted(words)}"
                self.found.disagreements.append(text)
            await self._remove(key)
            return
        self.found.bound += 1
        if node not in ours:
            self.found.disagreements.append(f"{key}: bound to {node}, we say {sorted(ours) or sorted(words)}")
        claims = self.cache.of(RESOURCE_CLAIMS).objects
        for place, planned in ours.get(node, {}).items():
            await self.until(
                "its claim is allocated", lambda place=place: claims[place].status.allocation is not None
            )
            if planned is None:
                continue
            given = claims[place].status.allocation
            theirs = [(one.request, one.driver, one.pool, one.device) for one in given.devices.results]
            chosen = [
                (one.request, one.driver, one.pool, one.device) for one in planned.devices.results or ()
            ]
            self.found.devices += len(theirs)
            if theirs != chosen or given.node_selector != planned.node_selector:
                self.found.disagreements.append(
                    f"{key} {place}: they {theirs} {given.node_selector}, we {chosen} {planned.node_selector}"
                )
        self.snapshot.add_pod(self.pods.objects[key], node)

    async def _remove(self, key):
        """Take a pod away, and wait until nobody holds its claims for it."""
        if key not in self.pods.objects:
            return
        await self.cluster.delete(PODS, key[1], namespace=key[0], grace_period_s=0)
        claims = self.cache.of(RESOURCE_CLAIMS).objects
        await self.until("the pod is deleted", lambda: key not in self.pods.objects)
        await self.until(
            "its claims are free",
            lambda: (
                not any(
                    user.name == key[1] for one in claims.values() for user in one.status.reserved_for or ()
                )
                and not any(one.status.allocation and not one.status.reserved_for for one in claims.values())
            ),
        )
        self.snapshot.remove_pod(key)


@asynccontextmanager
async def _watched(plane: Plane, clock, seed):
    async with HttpCluster(plane.connection, clock) as cluster, asyncio.TaskGroup() as group:
        comparison = Comparison(cluster, clock, seed)
        comparison.cache.start()
        informers = (comparison.pods, comparison.nodes, comparison.cache)
        tasks = [group.create_task(one.run()) for one in informers]
        for one in informers:
            await one.synced()
        try:
            yield comparison
        finally:
            for task in tasks:
                task.cancel()


def compare(plane: Plane, *, nodes: int, pods: int, seed: int) -> Found:
    """Play pods with claims on a plane without nodes."""

    async def main(clock):
        async with _watched(plane, clock, seed) as comparison:
            await comparison.settle(nodes)
            for index in range(pods):
                await comparison.play(index)
            return comparison.found

    return run_real(main)


def main() -> int:
    """Run a comparison on a plane of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_plane(Path(folder), manager_flags=PATIENCE) as plane,
    ):
        found = compare(plane, nodes=given.nodes, pods=given.pods, seed=given.seed)
    print(found)
    return 1 if found.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
