"""Soft taints, which keep new pods off nodes that are not needed."""

from __future__ import annotations

from tests.nodes.reference.node_marks import CANDIDATE, TO_BE_DELETED, clean_taint, has_taint, put_taint
from tests.nodes.reference.world import Json, World


def update(world: World, nodes: list[Json], unneeded: list[str], now: int) -> None:
    """Take taints off needed nodes, then put them on unneeded ones, as many in all as the flag allows.

    `nodes` are the registered ones as the loop saw them at its start, in its order, without upcoming ones:
    what the loop did to a node meanwhile does not show in them, and goes when one of them is written.
    """
    left = world.flags.whole("max-bulk-soft-taint-count")
    if world.flags.duration("max-bulk-soft-taint-time") <= 0:
        left = 0
    names = set(unneeded)
    ours = [
        one for one in nodes if world.group_of_node(one) is not None and not has_taint(one, TO_BE_DELETED)
    ]
    for node in ours:
        if node["metadata"]["name"] not in names and has_taint(node, CANDIDATE) and left > 0:
            clean_taint(world, node, CANDIDATE)
            left -= 1
    for node in ours:
        if node["metadata"]["name"] in names and not has_taint(node, CANDIDATE) and left > 0:
            put_taint(world, node, CANDIDATE, "PreferNoSchedule", now)
            left -= 1
