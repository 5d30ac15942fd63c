"""NodeResourcesFit and NodeResourcesBalancedAllocation: how full a node will be, and how evenly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubetide.scheduling.pods.resources import SCORED
from kubetide.scheduling.scoring.base import MOST, Incoming, Scored
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector

Strategy = Callable[[Int64Vector, Int64Vector], Int64Vector]
"""The score of one resource, from what pods will have requested of it and what nodes offer (never 0)."""


def least_allocated(requested: Int64Vector, offered: Int64Vector) -> Int64Vector:
    """Return the free share in percent; 0 if more is requested than allocatable."""
    scores: Int64Vector = np.maximum(offered - requested, 0) * MOST // offered
    return scores


def most_allocated(requested: Int64Vector, offered: Int64Vector) -> Int64Vector:
    """Return the requested share in percent; 100 if more is requested than allocatable."""
    scores: Int64Vector = np.minimum(requested, offered) * MOST // offered
    return scores


class NodeResourcesFit:
    """Scores cpu and memory with equal weight; resources that a node lacks do not count.

    Source: kube-scheduler v1.36 NodeResourcesFit, scoringStrategy LeastAllocated and MostAllocated.
    """

    name = "NodeResourcesFit"

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:  # noqa: ARG002  # the protocol's form
        return True

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        stock = cluster.stock_of(feasible)
        requests = np.array(pod.pod_class.preferences.requests, np.int64)[:, None]
        scores = self._strategy(stock.requested + stock.unasked + requests, stock.divisor)
        if stock.is_whole:
            return Scored.as_they_are(scores.sum(axis=0) // len(SCORED))
        there = stock.offered != 0
        total, number = np.where(there, scores, 0).sum(axis=0), there.sum(axis=0)
        return Scored.as_they_are(total // np.maximum(number, 1))


class NodeResourcesBalancedAllocation:
    """Scores how much closer the pod brings the shares of cpu and memory.

    Source: kube-scheduler v1.36 NodeResourcesBalancedAllocation.
    """

    name = "NodeResourcesBalancedAllocation"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:  # noqa: ARG002  # the protocol's form
        return any(pod.pod_class.requests.get(name) for name in SCORED)

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        if not self.differs(pod, cluster):
            return None
        stock = cluster.stock_of(feasible)
        request = np.array([pod.pod_class.requests.get(name, 0) for name in SCORED], np.int64)[:, None]
        # The shares of both resources, after and before.
        shares = np.array((stock.requested + request, stock.requested)) / stock.divisor
        np.minimum(shares, 1.0, out=shares)
        deviation = np.abs(shares[:, 0] - shares[:, 1]) / 2
        if not stock.is_whole:
            # With one resource or none there is no deviation.
            deviation[:, (stock.offered == 0).any(axis=0)] = 0.0
        after, before = ((1 - deviation) * float(MOST)).astype(np.int64)
        # Go divides towards 0; the sum is never negative, as each is at least 50.
        return Scored.as_they_are(50 + (50 + after - before) // 2)
