"""The least processors and memory that the whole cluster must keep."""

from __future__ import annotations

from tests.nodes.replay.node_marks import is_being_deleted
from tests.nodes.replay.quotas import RESOURCES, Quotas
from tests.nodes.replay.world import Json, World


def room_above_floors(world: World, nodes: list[Json]) -> Quotas:
    """Return how much may go. `nodes` are all of the snapshot, upcoming ones too.

    Nodes being deleted do not count. Upstream counts them, and may so fall below the floor: on purpose otherwise here.
    """
    made = Quotas(dict.fromkeys(RESOURCES, 0), {})
    used = dict.fromkeys(RESOURCES, 0)
    for node in nodes:
        if (node["metadata"].get("labels") or {}).get("type") == "virtual-kubelet":
            continue
        if is_being_deleted(node, world.now):
            continue
        group = world.group_of_node(node)
        for name, amount in made.size(group.id if group is not None else None, node).items():
            used[name] += amount
    least = {
        "cpu": world.flags.limits("cores-total")[0],
        "memory": world.flags.limits("memory-total")[0] << 30,
    }
    made.left = {name: max(0, used[name] - least[name]) for name in RESOURCES}
    return made
