"""What must hold in any run, checked from outside: by rules of its own, over the objects of the cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kubetide.nodes.facts.nodes import NOMINATION_TAINT, TO_BE_DELETED, has_taint
from kubetide.nodes.registry.nominations import awaits_nominations
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import controller_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.simulate.world import World
from kubetide.units.quantity import Quantity
from kubetide.units.time import Instant, after, format_rfc3339, minutes, seconds
from kubetide.vertical.annotations import observed_containers

LOOK_EVERY = seconds(30)
MOST_TAINTED = {TO_BE_DELETED: minutes(40), NOMINATION_TAINT: minutes(20)}
"""For longer no deletion takes: eviction, what pods may take to end, faults of cloud and API server, and a rest.

A node is opened by the next loop that acts and whose cloud answers; leases are lost, and calls hang, for minutes.
"""
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_MOST = 20


class Looking:
    """Looks at a world until it ends; ``found`` holds what was wrong, a sentence each."""

    def __init__(
        self, world: World, bounds: dict[str, tuple[int, int]], reviewed: frozenset[str] = frozenset()
    ) -> None:
        """Take the world; by Deployment that an HPA scales its least and most replicas; and workloads whose new pods a VPA changes."""
        self.found: list[str] = []
        self.looks = self.bindings = 0
        self._world = world
        self._bounds, self._reviewed = bounds, reviewed
        self._tainted: dict[tuple[str, str], Instant] = {}
        world.pods.on_change(self._pod_changed)

    async def run(self) -> None:
        while True:
            await self._world.clock.sleep(LOOK_EVERY)
            self.looks += 1
            self._look_at_nodes()
            self._look_at_taints()
            self._look_at_groups()
            self._look_at_replicas()

    def _wrong(self, what: str) -> None:
        if len(self.found) < _MOST:
            self.found.append(f"{format_rfc3339(self._world.clock.now())} {what}")

    def _pods_on(self) -> dict[str, list[Pod]]:
        there: dict[str, list[Pod]] = {}
        for pod in self._world.pods.objects.values():
            if pod.spec.node_name and not is_finished(pod):
                there.setdefault(pod.spec.node_name, []).append(pod)
        return there

    def _look_at_nodes(self) -> None:
        for name, pods in self._pods_on().items():
            node = self._world.nodes.objects.get(("", name))
            if node is None:
                continue
            for resource in ("cpu", "memory"):
                offered = _amount(node.status.allocatable, resource)
                asked = sum(_requests(pod, resource) for pod in pods)
                if asked > offered:
                    self._wrong(f"node {name}: pods ask for {asked} of {resource}, it has {offered}")
            daemons = Counter(
                owner.uid
                for pod in pods
                if (owner := controller_of(pod.metadata)) is not None
                and owner.kind == "DaemonSet"
                and pod.metadata.deletion_timestamp is None
            )
            if any(number > 1 for number in daemons.values()):
                self._wrong(f"node {name} has two pods of one DaemonSet")

    def _look_at_taints(self) -> None:
        """A node that is tainted for its deletion goes, or loses the taint, before long; one kept for its pods is opened."""
        now, settings = self._world.clock.now(), self._world.settings.of(Settings)
        tainted = {
            (name, key): self._tainted.get((name, key), now)
            for (_, name), node in self._world.nodes.objects.items()
            for key in MOST_TAINTED
            if has_taint(node, key) and (key == TO_BE_DELETED or awaits_nominations(node, settings))
        }
        self._tainted = tainted
        for (name, key), since in tainted.items():
            if after(since, MOST_TAINTED[key]) < now:
                self._wrong(f"node {name} has {key} since {format_rfc3339(since)}")

    def _look_at_groups(self) -> None:
        """Groups of the scenario stay, and no more are created than the flag allows."""
        there, scenario = self._world.cloud.counts(), self._world.scenario
        given = {one.name for one in scenario.node_groups}
        if missing := sorted(given - there.keys()):
            self._wrong(f"groups that a person made are missing: {', '.join(missing)}")
        most = int(scenario.flags.get("max-autoprovisioned-node-group-count", 0))
        if len(there.keys() - given) > most:
            self._wrong(f"{len(there.keys() - given)} groups were created, the most are {most}")

    def _look_at_replicas(self) -> None:
        for (_, name), deployment in self._world.deployments.objects.items():
            least, most = self._bounds.get(name, (0, 1 << 30))
            replicas = deployment.spec.replicas
            # Before the loop's first tick the number is the manifest's.
            if self.looks > 20 and replicas is not None and not least <= replicas <= most:
                self._wrong(f"deployment {name} has {replicas} replicas, its HPA allows {least} to {most}")

    def _pod_changed(self, _key: Any, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.node_name or (old is not None and old.spec.node_name):
            return
        node = self._world.nodes.objects.get(("", new.spec.node_name))
        if node is None:
            return
        self.bindings += 1
        self._check_node(new, node)
        self._check_apart(new, node)
        self._check_reviewed(new)

    def _check_node(self, pod: Pod, node: Node) -> None:
        name, labels = pod.metadata.name, node.metadata.labels or {}
        asked = pod.spec.node_selector or {}
        if any(labels.get(key) != value for key, value in asked.items()):
            self._wrong(f"pod {name} is on {node.metadata.name}, which lacks {asked}")
        tolerated = {one.key for one in pod.spec.tolerations or ()}
        for taint in node.spec.taints or ():
            own = taint.key == "pool" and taint.effect == "NoSchedule"
            if own and taint.key not in tolerated and "" not in tolerated:
                self._wrong(f"pod {name} is on {node.metadata.name} and does not tolerate {taint.key}")

    def _check_apart(self, pod: Pod, node: Node) -> None:
        affinity = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
        terms = affinity and affinity.required_during_scheduling_ignored_during_execution
        if not terms:
            return
        mine = (pod.metadata.labels or {}).get("app")
        for other in self._world.pods.objects.values():
            same = other.spec.node_name == node.metadata.name and other.metadata.uid != pod.metadata.uid
            if same and (other.metadata.labels or {}).get("app") == mine and not is_finished(other):
                self._wrong(f"pod {pod.metadata.name} is beside {other.metadata.name}")

    def _check_reviewed(self, pod: Pod) -> None:
        """A pod that is made while the admission loop runs has been reviewed by it."""
        app = (pod.metadata.labels or {}).get("app")
        if self.looks > 20 and app in self._reviewed and not observed_containers(pod.metadata.annotations):
            self._wrong(f"pod {pod.metadata.name} was not reviewed")


def _requests(pod: Pod, resource: str) -> int:
    """Return what the kubelet has given a pod's containers; a resize that it has put off does not count yet."""
    given = {one.name: one.allocated_resources for one in pod.status.container_statuses or ()}
    return sum(
        _amount(given.get(one.name) or one.resources.requests, resource) for one in pod.spec.containers or ()
    )


def _amount(quantities: Any, resource: str) -> int:
    text = (quantities or {}).get(resource)
    return 0 if text is None else int(Quantity.parse(text).milli_value())
