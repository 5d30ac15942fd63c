"""Targets that fit on the nodes of a group: an option beyond upstream (``fit_node_groups``).

A pod whose containers together are recommended more than any new node has left beside its DaemonSets would never be
scheduled. The node loop says on the board what a new node of each group has left. The group that holds most of what is
recommended is chosen, and the targets of the pod's containers are lowered in proportion until they fit there together.
Containers and resources without a recommendation keep what they request, so that much of the node is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from kubetide.objects.meta import Key
from kubetide.plan.board import Board, NodeSize
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.facts.members import Members

_ENDLESS: Final = NodeSize(1 << 62, 1 << 62)
"""A node that holds whatever is recommended."""
_NOTHING: Final = NodeSize(0, 0)

ContainerResource = tuple[str, str]
"""Container and resource."""


class Fit(NamedTuple):
    """The factors that lower targets, and the node size that they fit."""

    cpu: float
    memory: float
    size: NodeSize


def sizes_to_fit(board: Board | None) -> tuple[NodeSize, ...]:
    """Return what new nodes have left; none while the node loop has not said it yet.

    Where no node loop is in the process, or no group makes nodes of known size, it is a node that holds everything.
    """
    sizes = None if board is None else board.sizes
    is_to_come = board is not None and board.tells_sizes and sizes is None
    return sizes or (() if is_to_come else (_ENDLESS,))


def taken_by_others(
    members: Members, recommended: Mapping[Key, AbstractSet[ContainerResource]]
) -> dict[Key, NodeSize]:
    """Return, by VPA, the most that containers of one pod request of resources that are not recommended to them.

    Args:
        recommended: Of some VPAs, the container and resource of each recommendation.
    """
    found: dict[Key, NodeSize] = {}
    for (namespace, _), pod in members.pods.items() if recommended else ():
        for vpa in members.vpas_of(namespace, pod):
            made = recommended.get(vpa)
            if made is not None:
                cpu = sum(one.cpu for name, one in pod.resources.items() if (name, "cpu") not in made)
                memory = sum(
                    one.memory for name, one in pod.resources.items() if (name, "memory") not in made
                )
                most = found.get(vpa, _NOTHING)
                found[vpa] = NodeSize(max(most.cpu_milli, cpu), max(most.memory_bytes, memory))
    return found


def sizes_beside(sizes: Sequence[NodeSize], taken: NodeSize | None) -> tuple[NodeSize, ...]:
    """Return what new nodes have left beside what is taken, without those that cannot hold that."""
    if taken is None:
        return tuple(sizes)
    return tuple(
        NodeSize(one.cpu_milli - taken.cpu_milli, one.memory_bytes - taken.memory_bytes)
        for one in sizes
        if one.cpu_milli > taken.cpu_milli and one.memory_bytes > taken.memory_bytes
    )


def fit_of(cpu_milli: int, memory_bytes: int, sizes: Sequence[NodeSize]) -> Fit | None:
    """Return how to lower a pod to fit the best of the sizes; None if it fits one already, or none is known."""
    shares = [
        (_share(size.cpu_milli, cpu_milli), _share(size.memory_bytes, memory_bytes), size) for size in sizes
    ]
    if not shares:
        return None
    best = max(shares, key=lambda one: (min(one[:2]), one[0] + one[1], one[2]))
    return None if min(best[:2]) >= 1.0 else Fit(*best)


def _share(has: int, needs: int) -> float:
    return 1.0 if needs <= has else max(has, 0) / needs


def fitted(
    cpu: Sequence[Int64Vector],
    memory: Sequence[Int64Vector],
    bounds: Sequence[int],
    fits: Iterable[Fit | None],
) -> tuple[list[Int64Vector], list[Int64Vector]]:
    """Return the lowered targets and bounds of the containers of several VPAs.

    Args:
        cpu, memory: Target, lower and upper bound, each (containers,).
        bounds: By VPA, where its containers begin, and the end of all.
        fits: By VPA, how its pods are lowered.
    """
    found = [one.copy() for one in cpu], [one.copy() for one in memory]
    for (begin, end), fit in zip(pairwise(bounds), fits, strict=True):
        for amounts, share in () if fit is None else ((found[0], fit.cpu), (found[1], fit.memory)):
            if share < 1.0:
                most = np.floor(amounts[0][begin:end] * share).astype(np.int64)
                for one in amounts:
                    one[begin:end] = np.minimum(one[begin:end], most)
    return found
