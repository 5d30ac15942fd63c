"""Which nodes a loop considers for removal, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.disruptions import Disruptions
from tests.nodes.reference.drain_rules import pods_to_move
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Json, World

from kubetide.scheduling.estimator.unstable_sort import descending_order


@dataclass
class Candidates:
    """Upstream's chain of processors: sizes, order, and the delays of each group.

    `previous` are the nodes that were unneeded when a loop last asked. The times are those at which the cloud
    took a call, by group; they count with `--scale-down-delay-type-local` only.
    """

    previous: set[str] = field(default_factory=set)
    scale_ups: dict[str, int] = field(default_factory=dict)
    scale_downs: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    def scale_down_candidates(
        self, world: World, snapshot: Snapshot, nodes: list[Json], now: int
    ) -> list[Json]:
        """Return the nodes to look at, of all that are registered and not upcoming."""
        above = [one for one in nodes if _is_above_minimum(world, one)]
        emptiness = {one["metadata"]["name"]: _emptiness(world, snapshot, one, now) for one in above}

        def score(one: Json) -> int:
            name = one["metadata"]["name"]
            return -2 * emptiness[name] - (name not in self.previous)

        candidates = [above[at] for at in descending_order([score(one) for one in above])]
        if world.flags.on("scale-down-delay-type-local"):
            candidates = [one for one in candidates if not self._is_delayed(world, one, now)]
        return candidates

    def note_unneeded(self, names: list[str]) -> None:
        """Remember what the planner found; upstream notes it right after the planner's update."""
        self.previous = set(names)

    def _is_delayed(self, world: World, node: Json, now: int) -> bool:
        group = world.group_of_node(node)
        assert group is not None
        for times, flag in (
            (self.scale_ups, "scale-down-delay-after-add"),
            (self.scale_downs, "scale-down-delay-after-delete"),
            (self.failures, "scale-down-delay-after-failure"),
        ):
            if group.id in times and times[group.id] + world.flags.duration(flag) > now:
                return True
        return False


def _is_above_minimum(world: World, node: Json) -> bool:
    group = world.group_of_node(node)
    return group is not None and group.target > group.min


def _emptiness(world: World, snapshot: Snapshot, node: Json, now: int) -> int:
    """Return 0 for an empty node, 1 if pods must end on it, 2 for others. No budgets and no owners are asked here."""
    place = snapshot.get(node["metadata"]["name"])
    if place is None:
        return 2
    moves = pods_to_move(world, place.pods, Disruptions(), now, check_owners=False)
    if moves.blocking is not None or moves.pods:
        return 2
    return 1 if moves.on_completion else 0
