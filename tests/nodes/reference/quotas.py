"""The limits of the whole cluster on processors and memory, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.nodes.reference.node_marks import is_being_deleted
from tests.nodes.reference.world import Json, World

from kubetide.units.quantity import whole

RESOURCES = ("cpu", "memory")


def capacity(node: Json) -> dict[str, int]:
    """Whole cores, rounded up, and bytes of a node."""
    given = (node.get("status") or {}).get("capacity") or {}
    return {name: max(0, whole(given[name])) if name in given else 0 for name in RESOURCES}


@dataclass
class Quotas:
    """What is left. `sizes` holds what a node of each group has; the first node seen of a group stands for all."""

    left: dict[str, int]
    sizes: dict[str, dict[str, int]]

    @classmethod
    def of(cls, world: World, nodes: list[Json]) -> Quotas:
        """Return what may be added below the maximum."""
        made, used = cls._counted(world, nodes)
        made.left = {name: max(0, _limit(world, name)[1] - used[name]) for name in RESOURCES}
        return made

    @classmethod
    def above_minimum(cls, world: World, nodes: list[Json]) -> Quotas:
        """Return what may be removed. `nodes` are all of the snapshot, upcoming ones too.

        Nodes being deleted do not count. Upstream counts them and may so fall below the minimum; here it is
        otherwise on purpose.
        """
        staying = [one for one in nodes if not is_being_deleted(one, world.now)]
        made, used = cls._counted(world, staying)
        made.left = {name: max(0, used[name] - _limit(world, name)[0]) for name in RESOURCES}
        return made

    @classmethod
    def _counted(cls, world: World, nodes: list[Json]) -> tuple[Quotas, dict[str, int]]:
        made, used = cls({}, {}), dict.fromkeys(RESOURCES, 0)
        for node in nodes:
            if (node["metadata"].get("labels") or {}).get("type") == "virtual-kubelet":
                continue
            group = world.group_of_node(node)
            for name, amount in made.size(group.id if group is not None else None, node).items():
                used[name] += amount
        return made, used

    def size(self, group: str | None, node: Json) -> dict[str, int]:
        if group is None:
            return capacity(node)
        return self.sizes.setdefault(group, capacity(node))

    def allowed(self, group: str, template: Json, count: int) -> tuple[int, list[str]]:
        """Return how many of the nodes the limits allow, and which resources run short."""
        allowed, short = count, []
        for name, amount in self.size(group, template).items():
            if amount > 0 and self.left[name] < amount * count:
                allowed = min(allowed, self.left[name] // amount)
                short.append(name)
        return allowed, short

    def refusal(self, group: str, template: Json, count: int) -> list[str]:
        """Reasons to skip the group if it needs so many nodes at least."""
        _, short = self.allowed(group, template, count)
        return [f'exceeded quota: "cluster-wide", resources: {", ".join(short)}'] if short else []

    def take(self, group: str, template: Json, count: int) -> None:
        """Use up what the nodes need; nothing if they do not all fit."""
        if self.allowed(group, template, count)[0] == count:
            for name, amount in self.size(group, template).items():
                self.left[name] = max(0, self.left[name] - amount * count)


def _limit(world: World, resource: str) -> tuple[int, int]:
    """Return minimum and maximum of the whole cluster: cores, or bytes."""
    if resource == "cpu":
        return world.flags.limits("cores-total")
    low, high = world.flags.limits("memory-total")
    return low << 30, high << 30
