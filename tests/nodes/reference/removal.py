"""Simulated removals: whether the pods of a node find places elsewhere, one node after another."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.disruptions import Disruptions
from tests.nodes.reference.drain_rules import pods_to_move
from tests.nodes.reference.hinting import Hinting
from tests.nodes.reference.node_marks import TO_BE_DELETED, taints
from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_kinds import unbound
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Json, World

from kubetide.units.time import seconds


@dataclass
class Removable:
    """A node that may go. It is risky if the budgets do not let all its pods go at once."""

    node: Json
    pods: list[Json] = field(default_factory=list)
    on_completion: list[Json] = field(default_factory=list)
    risky: bool = False

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


@dataclass
class Unremovable:
    node: Json
    reason: str
    blocking: tuple[Json, str] | None = None

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


@dataclass
class Removals:
    """Upstream's simulator. It remembers over loops where it put pods; what it placed stays in the snapshot."""

    hinting: Hinting = field(default_factory=Hinting)

    def simulate(
        self,
        world: World,
        snapshot: Snapshot,
        name: str,
        destinations: set[str],
        disruptions: Disruptions,
        now: int,
    ) -> Removable | Unremovable:
        """Take a node out of the snapshot and put its pods elsewhere; leave the snapshot alone if one has no place."""
        place = snapshot.get(name)
        if place is None:
            return Unremovable({"metadata": {"name": name}}, "NoNodeInfo")
        node = place.node
        moves = pods_to_move(world, place.pods, disruptions, now)
        if moves.blocking is not None:
            return Unremovable(node, "BlockedByPod", moves.blocking)
        snapshot.fork()
        if not self._move(snapshot, place, moves.pods, destinations, now):
            snapshot.revert()
            return Unremovable(node, "NoPlaceToMovePods")
        snapshot.commit()
        return Removable(node, moves.pods, moves.on_completion)

    def _move(
        self, snapshot: Snapshot, place: Place, pods: list[Json], destinations: set[str], now: int
    ) -> bool:
        """The node stays in its place, tainted and bare, while its pods look for another: the search counts it."""
        snapshot.replace_node(_ghost(place, now))
        free = [unbound(one) for one in pods]
        placed = self.hinting.try_all(
            snapshot,
            free,
            lambda other: other.name != place.name and other.name in destinations,
            stop_at_failure=True,
        )
        if len(placed) != len(free):
            return False
        snapshot.remove_node(place.name)
        return True


def _ghost(place: Place, now: int) -> Place:
    taint = {"key": TO_BE_DELETED, "value": str(now // seconds(1)), "effect": "NoSchedule"}
    spec = {**place.node["spec"], "taints": [*taints(place.node), taint]}
    return Place({**place.node, "spec": spec})
