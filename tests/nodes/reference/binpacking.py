"""How many new nodes of one group the pods need, and which pods these nodes take."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.equivalence import PodGroup
from tests.nodes.reference.places import Place
from tests.nodes.reference.snapshot import Snapshot, allocatable, requests
from tests.nodes.reference.spread import UNEVEN
from tests.nodes.reference.templates import HOSTNAME, fresh_copy
from tests.nodes.reference.world import Group, Json, World

from kubetide.scheduling.estimator.unstable_sort import descending_order


def node_limit(world: World, groups: list[Group], node_count: int) -> int:
    """Return how many nodes an estimate may add: 0 is no limit, -1 is none at all.

    It is the smallest of what one scale-up may add, what the group and those similar to it have left up to their
    maximum, and what the cluster has left.
    """
    most = world.flags.whole("max-nodes-total")
    spare = sum(max(0, one.max - one.target) for one in groups)
    left = 0
    if most != 0:
        left = most - node_count if most > node_count else -1
    limits = [world.flags.whole("max-nodes-per-scaleup"), spare if spare > 0 else -1, left]
    if any(one < 0 for one in limits):
        return -1
    return min((one for one in limits if one > 0), default=0)


def largest_first(groups: list[PodGroup], template: Place) -> list[PodGroup]:
    """Order groups by what share of a node one pod requests, processor and memory added up."""
    has = allocatable(template.node)

    def score(group: PodGroup) -> float:
        wants = requests(group.sample)
        return sum(wants.get(one, 0) / has[one] for one in ("cpu", "memory") if has.get(one, 0) > 0)

    return [groups[at] for at in descending_order([score(one) for one in groups])]


def is_spread_over_hosts(pod: Json) -> bool:
    """Return whether the pod has a constraint over host names, be it only a wish."""
    return any(one["topologyKey"] == HOSTNAME for one in pod["spec"].get("topologySpreadConstraints") or ())


@dataclass
class Estimate:
    """One estimate under way. Nodes that took no pod do not count as needed, but use up the limit."""

    snapshot: Snapshot
    template: Place
    limit: int
    names: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    placed: list[Json] = field(default_factory=list)

    def place_all(self, groups: list[PodGroup]) -> tuple[int, list[Json]]:
        """Return the number of nodes needed and the pods that they take, in the order in which they were placed."""
        self.snapshot.fork()
        more_nodes = True
        for group in largest_first(groups, self.template):
            left = self.on_nodes_there(group.pods)
            if more_nodes:
                more_nodes = self.on_new_nodes(left)
        self.snapshot.revert()
        return len(self.used), self.placed

    def on_nodes_there(self, pods: list[Json]) -> list[Json]:
        """Place pods on nodes of this estimate by search, up to the first that fits none; return it and the rest."""
        for done, pod in enumerate(pods):
            name = self.snapshot.find(pod, lambda place: place.name in self.names)
            if name is None:
                return pods[done:]
            self.put(pod, name)
        return []

    def on_new_nodes(self, pods: list[Json]) -> bool:
        """Place each pod on the last node, or on a new one; return whether later groups may still add nodes."""
        for pod in pods:
            last = self.names[-1] if self.names else None
            if last is not None and self.on_last_node(pod, last):
                continue
            if last is not None and last not in self.used:
                return True  # the last node is empty: no other would take the pod either
            if self.limit < 0 or (self.limit > 0 and len(self.names) >= self.limit):
                return False
            name = self.add_node()
            if self.snapshot.check(pod, name):
                return True
            self.put(pod, name)
        return True

    def on_last_node(self, pod: Json, last: str) -> bool:
        """Place a pod on the last node; return whether it has a place.

        What is spread over host names, and would be spread unevenly there, goes to any other node on which it fits. That
        may be a node of the cluster, which then counts as a new one.
        """
        reasons = self.snapshot.check(pod, last)
        name: str | None = last
        if reasons:
            if UNEVEN not in reasons or not is_spread_over_hosts(pod):
                return False
            name = self.snapshot.find(pod, lambda place: place.name != last)
        if name is not None:
            self.put(pod, name)
        return name is not None

    def add_node(self) -> str:
        made = fresh_copy(self.template, f"e-{len(self.names)}")
        self.snapshot.add_node(made)
        self.names.append(made.name)
        return made.name

    def put(self, pod: Json, name: str) -> None:
        self.snapshot.add_pod(pod, name)
        self.used.add(name)
        self.placed.append(pod)
