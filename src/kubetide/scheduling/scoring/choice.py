"""The choice among feasible nodes: kube-scheduler's order of nodes, and its tie-break."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.scoring.base import Incoming
from kubetide.scheduling.scoring.profile import Profile
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.seeds import unit_interval
from kubetide.units.vectors import Int64Vector

_LEAST_FOUND = 100
"""With fewer nodes all are looked at; with more at least so many that take the pod are looked for."""
_LEAST_PERCENT = 5
_PATH_BITS = 40


class NodeChooser:
    """Chooses nodes for one pod after another.

    The search goes over the nodes, zones in turn, from where the last one ended, and ends when enough
    nodes are found. Of those with the highest score the first in the pre-order of a binary heap is
    taken, which is where upstream's heap has it. For a pod that names its nodes upstream's order is
    that of a map; here it is drawn from the seed. Its nodes count as looked at, too.

    Source: kube-scheduler v1.36 schedule_one: percentageOfNodesToScore 0, selectHost without extenders.
    """

    def __init__(self, profile: Profile, seed: int = 0) -> None:
        self._profile = profile
        self._seed = seed
        self._start = 0
        self._ranks: Int64Vector = np.zeros(0, np.int64)

    def choose(self, pod: Incoming, cluster: ScoredSnapshot) -> str | None:
        """Return the node for a pod, or None if none is feasible.

        Raises: ScoreError for a pod that cannot be scored, of which several nodes would take it.
        """
        found = self._search(pod, cluster)
        if not len(found):
            return None
        if len(found) > 1:
            found = found[[self._best(self._profile.total(pod, cluster, found))]]
        return cluster.node_names[int(found[0])]

    def _search(self, pod: Incoming, cluster: ScoredSnapshot) -> Int64Vector:
        """Return the rows that are scored, in the order in which they are found."""
        fits = cluster.feasible(pod.pod_class)
        selection = pod.pod_class.selection
        if selection is not None and selection.names is not None:
            named = sum(name in cluster for name in selection.names)
            self._start = (self._start + named) % max(len(cluster), 1)
            return self._shuffled(pod, cluster, np.flatnonzero(fits))
        order: Int64Vector = cluster.of_nodes("order", lambda: cluster.tree.order(cluster.rows.row_of))
        nodes = len(order)
        if self._start:
            self._start %= max(nodes, 1)
            order = np.concatenate((order[self._start :], order[: self._start]))
        places = np.flatnonzero(fits.take(order))
        enough = _enough(nodes)
        if len(places) > enough:
            # One more node that takes the pod ends the search, and the next one begins there.
            self._start = (self._start + int(places[enough])) % nodes
            places = places[:enough]
        return order[places]

    def _shuffled(self, pod: Incoming, cluster: ScoredSnapshot, rows: Int64Vector) -> Int64Vector:
        if len(rows) < 2:
            return rows
        names, key = cluster.node_names, pod.pod_class.key.hex()
        drawn = sorted(rows.tolist(), key=lambda row: unit_interval(self._seed, "named", key, names[row]))
        return np.array(drawn, np.int64)

    def _best(self, scores: Int64Vector) -> int:
        """Return the place that comes to the root when the scores are made a heap, bottom up.

        A parent stays above children that are not greater, and a right child comes up only if it is
        greater than the left: of the highest scores the first in pre-order reaches the root.
        """
        ties = np.flatnonzero(scores == scores.max())
        if len(ties) == 1:
            return int(ties[0])
        if len(self._ranks) < len(scores):
            self._ranks = _pre_order(2 * len(scores))
        return int(ties[self._ranks[ties].argmin()])


def _enough(nodes: int) -> int:
    """Return how many feasible nodes are enough in a cluster of so many."""
    if nodes < _LEAST_FOUND:
        return nodes + 1
    percent = max(_LEAST_PERCENT, 50 - nodes // 125)
    return max(_LEAST_FOUND, nodes * percent // 100)


def _pre_order(places: int) -> Int64Vector:
    """Return numbers that sort the places of a binary heap in pre-order, however many places there are.

    The path from the root to a place stands in the binary digits of its number counted from 1; an
    ancestor, whose path is shorter, comes first.
    """
    numbers = np.arange(1, places + 1, dtype=np.int64)
    digits = np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
    ranks: Int64Vector = (numbers << (_PATH_BITS - digits)) * 64 + digits
    return ranks
