"""Dominated offers: another offer does the same for no higher price."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kubetide.nodes.expander.least_cost.solver.problem import BoolMatrix, FleetProblem
from kubetide.units.vectors import BoolVector, Int64Vector


def useful_offers(problem: FleetProblem, nodes: int | None = None) -> BoolVector:
    """Return (offers,): whether an offer is not dominated.

    An offer is of no use when another has no less of everything, takes every class that it takes, costs
    no more and uses no more of any limit, and there are as many nodes of that as there can be need for; or of
    several such together. Of equal offers the first stay. For every choice with a dropped offer there is one without it that costs no more.

    Args:
        problem: The problem.
        nodes: The most that a choice can need; by default one for each pod.
    """
    total = int(problem.demand.sum()) if nodes is None else nodes
    needed = np.full(len(problem.prices), total, np.int64)
    for use, left in zip(problem.uses, problem.left, strict=True):
        needed = np.where(use > 0, np.minimum(needed, left // np.maximum(use, 1)), needed)
    useful = np.zeros(len(problem.prices), np.bool_)
    # What one of them makes useless may be left out at once: whatever it does for others, that one does too.
    some = _cheapest_of_like(problem, needed)
    useful[some] = _compared(_some(problem, some), needed[some], total, int(needed.max(initial=0)))
    return useful


def _cheapest_of_like(problem: FleetProblem, needed: Int64Vector) -> Int64Vector:
    """Return offers without those that differ from an earlier or cheaper one, of which there are enough, in price alone."""
    rows = np.ascontiguousarray(
        np.concatenate([problem.stock, problem.uses.T, problem.allowed.T], axis=1, dtype=np.int64)
    )
    width = rows.shape[1] * rows.itemsize
    content = rows.tobytes()
    enough = (problem.most >= needed).tolist()
    cheapest: dict[bytes, None] = {}
    offers: list[int] = []
    for offer in np.argsort(problem.prices, kind="stable").tolist():
        row = content[offer * width : (offer + 1) * width]
        if row not in cheapest:
            offers.append(offer)
            if enough[offer]:
                cheapest[row] = None
    found: Int64Vector = np.sort(np.array(offers, np.int64))
    return found


def _compared(problem: FleetProblem, needed: Int64Vector, total: int, most_needed: int) -> BoolVector:
    """Say of each offer whether no other makes it useless, each compared with each."""
    prices, stock, uses = problem.prices, problem.stock, problem.uses
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
    together = np.minimum(problem.most, total) @ better >= most_needed
    useful: BoolVector = np.logical_not(enough | (together & better.any(axis=0)))
    return useful


def narrowed(problem: FleetProblem, nodes: int | None = None) -> tuple[FleetProblem, Int64Vector]:
    """Return the problem with useful offers only, and the number of each in the full problem."""
    useful = useful_offers(problem, nodes)
    offers: Int64Vector = np.flatnonzero(useful)
    if useful.all():
        return problem, offers
    return _some(problem, offers), offers


def _some(problem: FleetProblem, offers: Int64Vector) -> FleetProblem:
    """Return the problem with some of its offers."""
    return replace(
        problem,
        stock=problem.stock[offers],
        prices=problem.prices[offers],
        most=problem.most[offers],
        allowed=problem.allowed[:, offers],
        uses=problem.uses[:, offers],
    )
