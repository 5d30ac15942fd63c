"""Pod deletion costs at a scale-in, pods of the emptiest nodes first (flag or annotation ``emptiest-node-first``).

ReplicaSets give back pods evenly, so no node ever empties. Here those of the node with the fewest pods go first: it
becomes free, and the node loop can give it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kubetide.horizontal.facts.views import PodView
from kubetide.horizontal.options.deletion_cost import choosable, is_active


def pods_by_node(pods: Iterable[PodView]) -> Mapping[str, int]:
    """Return the number of pods per node that would move with it, without those of DaemonSets."""
    return Counter(
        pod.node
        for pod in pods
        if pod.node and is_active(pod) and not pod.owner.startswith(("DaemonSet/", "Node/"))
    )


def costs_of_emptiest(
    pods: Sequence[PodView], by_node: Mapping[str, int], leaving: int
) -> tuple[tuple[str, int], ...]:
    """Return names and costs of the pods on the emptiest nodes."""
    ready, number = choosable(pods, leaving)
    placed = [pod for pod in ready if pod.node]
    chosen = sorted(placed, key=lambda pod: (by_node.get(pod.node, 0), pod.node, pod.name))[:number]
    return tuple((pod.name, rank - len(chosen)) for rank, pod in enumerate(chosen))
