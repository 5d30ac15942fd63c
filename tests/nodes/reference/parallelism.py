"""How many nodes one loop deletes at once, and of which groups."""

from __future__ import annotations

from dataclasses import dataclass

from tests.nodes.reference.deletions import Deletions
from tests.nodes.reference.group_options import count_registered, is_atomic
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Group, Json, World


@dataclass
class Batch:
    """Nodes of one group. `size` is how many must be ready before the cloud is called, for atomic groups."""

    group: Group
    nodes: list[Json]
    size: int = 0


def crop(
    world: World, snapshot: Snapshot, deletions: Deletions, empty: list[Json], drain: list[Json]
) -> tuple[list[Batch], list[Batch]]:
    """Return the batches that the flags allow next to the deletions under way: empty ones, and ones to drain."""
    return _Cropping(world, snapshot, deletions).crop(_by_group(world, empty), _by_group(world, drain))


def _by_group(world: World, nodes: list[Json]) -> list[Batch]:
    batches: dict[str, Batch] = {}
    for node in nodes:
        group = world.group_of_node(node)
        if group is not None:
            batches.setdefault(group.id, Batch(group, [])).nodes.append(node)
    return list(batches.values())


class _Cropping:
    def __init__(self, world: World, snapshot: Snapshot, deletions: Deletions) -> None:
        drained = len(deletions.drained)
        self.snapshot = snapshot
        self.all_left = world.flags.whole("max-scale-down-parallelism") - len(deletions.empty) - drained
        self.drain_left = world.flags.whole("max-drain-parallelism") - drained
        self.may_exceed = True
        """One atomic group may exceed the limits, if it is the first and anything is left of them."""

    def crop(self, empty: list[Batch], drain: list[Batch]) -> tuple[list[Batch], list[Batch]]:
        taken_empty, taken_drain = self._atomic_with_empty_nodes(empty, drain)
        self.drain_left = min(self.all_left, self.drain_left)
        with_empty = {one.group.id for one in empty}
        for batch in drain:
            if not is_atomic(batch.group) or batch.group.id in with_empty:
                continue
            count = len(batch.nodes)
            if self.drain_left < count and (self.drain_left == 0 or not self.may_exceed):
                break
            if self._is_whole(batch, count):
                taken_drain.append(batch)
                self._take(count, count)
        taken_empty += self._individual(empty, self.all_left)
        self.all_left -= sum(len(one.nodes) for one in taken_empty if not is_atomic(one.group))
        taken_drain += self._individual(drain, min(self.all_left, self.drain_left))
        return taken_empty, taken_drain

    def _atomic_with_empty_nodes(
        self, empty: list[Batch], drain: list[Batch]
    ) -> tuple[list[Batch], list[Batch]]:
        taken_empty: list[Batch] = []
        taken_drain: list[Batch] = []
        for batch in empty:
            if not is_atomic(batch.group):
                continue
            other = next((one for one in drain if one.group.id == batch.group.id), None)
            drains = len(other.nodes) if other is not None else 0
            count = len(batch.nodes) + drains
            if self.all_left < count or self.drain_left < drains:
                nothing_left = self.all_left == 0 or (drains > 0 and self.drain_left == 0)
                if nothing_left or not self.may_exceed:
                    break
            if self._is_whole(batch, count):
                taken_empty.append(batch)
                if other is not None:
                    other.size = batch.size
                    taken_drain.append(other)
                self._take(count, drains)
        return taken_empty, taken_drain

    def _is_whole(self, batch: Batch, count: int) -> bool:
        """Set the size of the batch; return whether these are all nodes of the group, by target or by registration.

        Upstream compares the empty nodes alone with those that registered, and waits for ever for a machine that
        never joins if others are to be drained.
        """
        registered = count_registered(batch.group, self.snapshot)
        batch.size = registered if count == registered else batch.group.target
        return count in (batch.group.target, registered)

    def _take(self, count: int, drains: int) -> None:
        self.all_left -= count
        self.drain_left -= drains
        self.may_exceed = False

    def _individual(self, batches: list[Batch], left: int) -> list[Batch]:
        """Return batches of ordinary groups while anything is left; the last one may lose nodes at its end."""
        taken = []
        for batch in batches:
            if is_atomic(batch.group):
                continue
            if left < 1:
                break
            batch.nodes = batch.nodes[:left]
            left -= len(batch.nodes)
            taken.append(batch)
        return taken
