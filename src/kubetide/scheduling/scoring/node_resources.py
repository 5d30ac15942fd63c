"""NodeResourcesFit and NodeResourcesBalancedAllocation: how full a node will be, and how evenly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubetide.scheduling.resources import SCORED
from kubetide.scheduling.rows import Int64Vector
from kubetide.scheduling.scoring.base import MOST, Incoming, Scored
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot

Strategy = Callable[[Int64Vector, Int64Vector], Int64Vector]
"""The score of one resource, from what pods will have requested of it and what nodes offer (never 0)."""


def least_allocated(requested: Int64Vector, offered: Int64Vector) -> Int64Vector:
    """Return the share that is left, in percent; 0 where more is requested than there is."""
    scores: Int64Vector = np.maximum(offered - requested, 0) * MOST // offered
    return scores


def most_allocated(requested: Int64Vector, offered: Int64Vector) -> Int64Vector:
    """Return the share that is taken, in percent; 100 where more is requested than there is."""
    scores: Int64Vector = np.minimum(requested, offered) * MOST // offered
    return scores


class NodeResourcesFit:
    """Scores cpu and memory alike; resources that a node does not offer do not count.

    Source: kube-scheduler v1.36 NodeResourcesFit, scoringStrategy LeastAllocated and MostAllocated.
    """

    name = "NodeResourcesFit"

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        total, number = np.zeros((2, len(feasible)), np.int64)
        for resource, request in zip(SCORED, pod.pod_class.preferences.requests, strict=True):
            offered, requested, unasked = cluster.taken(resource, feasible)
            there = offered != 0
            scores = self._strategy(requested + unasked + request, np.where(there, offered, 1))
            total += np.where(there, scores, 0)
            number += there
        return Scored.as_they_are(total // np.maximum(number, 1))


class NodeResourcesBalancedAllocation:
    """Scores how much nearer to each other the shares of cpu and memory come.

    Source: kube-scheduler v1.36 NodeResourcesBalancedAllocation.
    """

    name = "NodeResourcesBalancedAllocation"

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        requests = [pod.pod_class.requests.get(name, 0) for name in SCORED]
        if not any(requests):
            return None
        stocks = [cluster.taken(name, feasible)[:2] for name in SCORED]
        before = _balance([(offered, requested) for offered, requested in stocks])
        after = _balance(
            [
                (offered, requested + request)
                for (offered, requested), request in zip(stocks, requests, strict=True)
            ]
        )
        # Go divides towards 0; the sum is never negative, as each is at least 50.
        return Scored.as_they_are(50 + (50 + after - before) // 2)


def _balance(stocks: list[tuple[Int64Vector, Int64Vector]]) -> Int64Vector:
    """Return 100 minus the standard deviation of the two shares in percent; of one share that is 0."""
    (cpu, used_cpu), (memory, used_memory) = stocks
    both = (cpu != 0) & (memory != 0)
    cpu_share = np.minimum(used_cpu / np.where(both, cpu, 1), 1.0)
    memory_share = np.minimum(used_memory / np.where(both, memory, 1), 1.0)
    deviation = np.where(both, np.abs(cpu_share - memory_share) / 2, 0.0)
    balance: Int64Vector = ((1 - deviation) * float(MOST)).astype(np.int64)
    return balance
