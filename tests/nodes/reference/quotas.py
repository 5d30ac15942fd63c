"""The limits of the whole cluster on processors, memory and GPUs, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.nodes.reference import accelerators
from tests.nodes.reference.node_marks import is_being_deleted
from tests.nodes.reference.world import Group, Json, World

from kubetide.units.quantity import whole

GIB = 1 << 30


def capacity(node: Json, group: Group | None) -> dict[str, int]:
    """Whole cores, rounded up, and bytes of a node; and its GPUs by type."""
    given = (node.get("status") or {}).get("capacity") or {}
    ordinary = {name: max(0, whole(given[name])) if name in given else 0 for name in ("cpu", "memory")}
    return ordinary | accelerators.counted(node, group)


@dataclass
class Quotas:
    """What is left. `sizes` holds what a node of each group has; the first node seen of a group stands for all."""

    world: World
    left: dict[str, int]
    sizes: dict[str, dict[str, int]]

    @classmethod
    def of(cls, world: World, nodes: list[Json]) -> Quotas:
        """Return what may be added below the maximum."""
        made, used = cls._counted(world, nodes)
        limits = _limits(world)
        made.left = {name: max(0, high - used.get(name, 0)) for name, (_, high) in limits.items()}
        return made

    @classmethod
    def above_minimum(cls, world: World, nodes: list[Json]) -> Quotas:
        """Return what may be removed. `nodes` are all of the snapshot, upcoming ones too.

        Nodes being deleted do not count. Upstream counts them and may so fall below the minimum; here it is
        otherwise on purpose.
        """
        staying = [one for one in nodes if not is_being_deleted(one, world.now)]
        made, used = cls._counted(world, staying)
        limits = _limits(world)
        made.left = {name: max(0, used.get(name, 0) - low) for name, (low, _) in limits.items()}
        return made

    @classmethod
    def _counted(cls, world: World, nodes: list[Json]) -> tuple[Quotas, dict[str, int]]:
        made = cls(world, {}, {})
        used: dict[str, int] = {}
        for node in nodes:
            if (node["metadata"].get("labels") or {}).get("type") == "virtual-kubelet":
                continue
            group = world.group_of_node(node)
            for name, amount in made.size(group.id if group is not None else None, node).items():
                used[name] = used.get(name, 0) + amount
        return made, used

    def size(self, group: str | None, node: Json) -> dict[str, int]:
        if group is None:
            return capacity(node, None)
        if group not in self.sizes:
            self.sizes[group] = capacity(node, self.world.groups[group])
        return self.sizes[group]

    def allowed(self, group: str, template: Json, count: int) -> tuple[int, list[str]]:
        """Return how many of the nodes the limits allow, and which resources run short."""
        allowed, short = count, []
        for name, amount in self.size(group, template).items():
            if name in self.left and amount > 0 and self.left[name] < amount * count:
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
                if name in self.left:
                    self.left[name] = max(0, self.left[name] - amount * count)


def _limits(world: World) -> dict[str, tuple[int, int]]:
    """Return minimum and maximum of the whole cluster: cores, bytes, and GPUs of the types that a flag names."""
    low, high = world.flags.limits("memory-total")
    found = {"cpu": world.flags.limits("cores-total"), "memory": (low * GIB, high * GIB)}
    for one in world.flags.names("gpu-total"):
        kind, least, most = one.split(":")
        found[kind] = int(least), int(most)
    return found
