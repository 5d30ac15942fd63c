"""Offers that no best choice needs: another does as much, for no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kubetide.scheduling.fleet.problem import BoolMatrix, FleetProblem
from kubetide.scheduling.rows import BoolVector, Int64Vector


def useful_offers(problem: FleetProblem, nodes: int | None = None) -> BoolVector:
    """Says for each offer whether it is worth looking at: (offers,) bool.

    An offer is of no use when another has no less of everything, takes every class that it takes, costs
    no more and uses no more of any limit, and there are as many nodes of that as there can be need for; or of
    several such together. Of equal offers the first are kept. Every choice then has one of the same price or less without it.

    Args:
        problem: The problem.
        nodes: The most that a choice can need; by default one for each pod.
    """
    prices, stock, uses = problem.prices, problem.stock, problem.uses
    total = int(problem.demand.sum()) if nodes is None else nodes
    needed = np.full(len(prices), total, np.int64)
    for use, left in zip(uses, problem.left, strict=True):
        needed = np.where(use > 0, np.minimum(needed, left // np.maximum(use, 1)), needed)
    as_good: BoolMatrix = np.less_equal(prices[:, None], prices)
    for column in stock.T:
        as_good &= np.greater_equal(column[:, None], column)
    for use in uses:
        as_good &= np.less_equal(use[:, None], use)
    refuses = (~problem.allowed).astype(np.float32)
    as_good &= np.equal(refuses.T @ problem.allowed.astype(np.float32), 0.0)
    # Equal offers are as good as each other: the first of them stays.
    better = as_good & (~as_good.T | np.tri(len(prices), k=-1, dtype=np.bool_).T)
    enough = better[problem.most >= needed].any(axis=0)
    together = np.minimum(problem.most, total) @ better >= needed.max(initial=0)
    useful: BoolVector = np.logical_not(enough | (together & better.any(axis=0)))
    return useful


def narrowed(problem: FleetProblem, nodes: int | None = None) -> tuple[FleetProblem, Int64Vector]:
    """Gives the problem with useful offers alone, and for each of these its number in the whole problem."""
    useful = useful_offers(problem, nodes)
    kept: Int64Vector = np.flatnonzero(useful)
    if useful.all():
        return problem, kept
    fewer = replace(
        problem,
        stock=problem.stock[kept],
        prices=problem.prices[kept],
        most=problem.most[kept],
        allowed=problem.allowed[:, kept],
        uses=problem.uses[:, kept],
    )
    return fewer, kept
