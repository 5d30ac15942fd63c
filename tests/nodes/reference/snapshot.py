"""Upstream's snapshot of a cluster, one node at a time: what fits where, and which node the search finds first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from tests.nodes.reference.node_affinity import admits
from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_affinity import Namespaces, affinity_refusal
from tests.nodes.reference.spread import spread_refusal
from tests.nodes.reference.tolerations import tolerates, tolerates_all
from tests.nodes.reference.world import Json

from kubetide.units.quantity import milli, whole


def amount(resource: str, value: str | float) -> int:
    """Thousandths of cores; whole numbers of everything else."""
    return milli(value) if resource == "cpu" else whole(value)


def requests(pod: Json) -> dict[str, int]:
    """Requests of a pod: the sum of its containers, or its largest init container; with overhead."""
    total: dict[str, int] = {}
    for container in pod["spec"].get("containers", ()):
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + amount(name, value)
    for container in pod["spec"].get("initContainers") or ():
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = max(total.get(name, 0), amount(name, value))
    for name, value in (pod["spec"].get("overhead") or {}).items():
        total[name] = total.get(name, 0) + amount(name, value)
    return total


def allocatable(node: Json) -> dict[str, int]:
    given = (node.get("status") or {}).get("allocatable") or {}
    return {name: amount(name, value) for name, value in given.items()}


def refusals(pod: Json, place: Place, places: Sequence[Place], namespaces: Namespaces) -> list[str]:
    """Reasons of the first filter that refuses the pod, in the order of the scheduler's default plugins; none: it fits.

    `places` are all nodes, this one among them: rules between pods count over all of them.
    """
    spec = place.node.get("spec") or {}
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if spec.get("unschedulable") and not tolerates(pod, unschedulable):
        return ["node(s) were unschedulable"]
    if pod["spec"].get("nodeName") and pod["spec"]["nodeName"] != place.name:
        return ["node(s) didn't match the requested node name"]
    if not tolerates_all(pod, place.node):
        return ["node(s) had untolerated taint(s)"]
    if not admits(pod["spec"], place.node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    if any(port in host_ports(other) for other in place.pods for port in host_ports(pod)):
        return ["node(s) didn't have free ports for the requested pod ports"]
    return (
        short_of(pod, place)
        or spread_refusal(pod, place, places)
        or affinity_refusal(pod, place, places, namespaces)
    )


def host_ports(pod: Json) -> list[tuple[int, str]]:
    """Ports of the node that the pod takes, on all addresses."""
    ports = [port for one in pod["spec"].get("containers", ()) for port in one.get("ports") or ()]
    return [(one["hostPort"], one.get("protocol", "TCP")) for one in ports if one.get("hostPort")]


def short_of(pod: Json, place: Place) -> list[str]:
    """What the node lacks: pods first, then resources in the order of the scheduler's filter."""
    has = allocatable(place.node)
    missing = ["Too many pods"] if len(place.pods) + 1 > has.get("pods", 0) else []
    wanted = requests(pod)
    ordinary = [one for one in ("cpu", "memory", "ephemeral-storage") if one in wanted]
    names = (*ordinary, *sorted(set(wanted) - set(ordinary)))
    taken = {name: sum(requests(one).get(name, 0) for one in place.pods) for name in names}
    short = [name for name in names if wanted[name] and wanted[name] > has.get(name, 0) - taken[name]]
    return missing + [f"Insufficient {name}" for name in short]


@dataclass
class Snapshot:
    """Nodes in the order in which they were added. A fork is a copy; a commit keeps it, a revert drops it.

    Upstream's snapshot is one object for the whole process; so is the index of the node that its search found
    last, which no revert takes back. Nodes added since the last fork come in order of name, after the others.
    """

    places: list[Place] = field(default_factory=list)
    saved: list[list[Place]] = field(default_factory=list)
    last_index: int = 0
    namespaces: Namespaces = field(default_factory=dict)

    def begin(self, places: list[Place], namespaces: Namespaces) -> None:
        """Start a loop: forget nodes, pods and forks, keep the index."""
        self.places, self.saved, self.namespaces = places, [], namespaces

    def fork(self) -> None:
        self.saved.append(self.places)
        self.places = [one.copy() for one in self.places]

    def revert(self) -> None:
        self.places = self.saved.pop()

    def commit(self) -> None:
        self.saved.pop()

    def get(self, name: str) -> Place | None:
        return next((one for one in self.places if one.name == name), None)

    def add_node(self, place: Place) -> None:
        assert self.get(place.name) is None, f"{place.name} is already in the snapshot"
        below = {one.name for one in self.saved[-1]} if self.saved else set()
        added = [one for one in self.places if one.name not in below]
        kept = [one for one in self.places if one.name in below]
        self.places = kept + sorted([*added, place], key=lambda one: one.name)

    def replace_node(self, place: Place) -> None:
        """Put a place where the one with its name is: the order stays."""
        self.places = [place if one.name == place.name else one for one in self.places]

    def remove_node(self, name: str) -> None:
        self.places = [one for one in self.places if one.name != name]

    def add_pod(self, pod: Json, name: str) -> None:
        """Put a pod on a node without asking whether it fits. The pod in the snapshot is a copy that names its node."""
        place = self.get(name)
        assert place is not None
        bound = deepcopy(pod)
        bound["spec"]["nodeName"] = name
        place.pods.append(bound)

    def check(self, pod: Json, name: str) -> list[str]:
        place = self.get(name)
        assert place is not None
        return refusals(pod, place, self.places, self.namespaces)

    def find(self, pod: Json, matches: Callable[[Place], bool] = lambda _: True) -> str | None:
        """Return the first node on which the pod fits, from the one after the last that was found; that one is remembered.

        The index starts at 0 and is not wrapped when it is stored: a node added at the end comes next.
        """
        for step in range(len(self.places)):
            index = (self.last_index + 1 + step) % len(self.places)
            place = self.places[index]
            if (place.node.get("spec") or {}).get("unschedulable") or not matches(place):
                continue
            if not refusals(pod, place, self.places, self.namespaces):
                self.last_index = index
                return place.name
        return None
