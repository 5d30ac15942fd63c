"""Round-robin placement of equal pods on the nodes that have capacity, by arithmetic.

Source: cluster-autoscaler core (Jul 2026), the scan over nodes from one past the last match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubetide.units.vectors import Int64Vector


class Fill(NamedTuple):
    """How many pods each node takes, and the last node that took one (-1: none)."""

    taken: Int64Vector
    last: int


def go_round(capacity: Int64Vector, pods: int, start: int) -> Fill:
    """Return the round-robin placement of pods on the nodes that have capacity, from ``start`` on.

    Args:
        capacity: (nodes,), how many pods each can take, not negative.
        pods: How many there are, at least 1.
        start: Node to begin with.
    """
    if not capacity.any():
        return Fill(np.zeros(len(capacity), np.int64), -1)
    if int(capacity.sum()) <= pods:
        rounds, taken, rest = int(capacity.max()), capacity.copy(), 0
    else:
        # The largest number of whole rounds, by bisection.
        rounds, above = pods // int(np.count_nonzero(capacity)), min(pods + 1, int(capacity.max()))
        while above - rounds > 1:
            middle = (rounds + above) // 2
            if int(np.minimum(capacity, middle).sum()) <= pods:
                rounds = middle
            else:
                above = middle
        taken = np.minimum(capacity, rounds)
        rest = pods - int(taken.sum())
    served = np.flatnonzero(capacity > rounds if rest else capacity >= rounds)
    # In the order of the scan: from ``start`` to the end, then from the beginning.
    first = int(np.searchsorted(served, start))
    served = np.concatenate([served[first:], served[:first]])
    if rest:
        served = served[:rest]
        taken[served] += 1
    return Fill(taken, int(served[-1]))
