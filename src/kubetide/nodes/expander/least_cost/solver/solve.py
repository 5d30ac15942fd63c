"""From a problem to a fleet: relaxation, greedy choice, column generation, whole nodes, and repair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kubetide.nodes.expander.least_cost.solver.columns import Columns
from kubetide.nodes.expander.least_cost.solver.dominance import narrowed
from kubetide.nodes.expander.least_cost.solver.greedy import choose_greedily
from kubetide.nodes.expander.least_cost.solver.problem import (
    Budget,
    Fleet,
    FleetProblem,
    FloatVector,
    Meter,
    Pattern,
    Purchase,
    placed_by,
    price_of,
)
from kubetide.nodes.expander.least_cost.solver.relaxation import penalty_of, relax
from kubetide.nodes.expander.least_cost.solver.repair import repair

RELAXATION, COLUMNS, ONE_NODE = "linear relaxation", "column generation", "one whole node"


def solve(
    problem: FleetProblem,
    budget: Budget = Budget(),  # noqa: B008  immutable
    meter: Meter | None = None,
) -> Fleet:
    """Choose nodes for as many pods as the limits allow, at the least price found, with a lower bound.

    Needs HiGHS. The same problem, budget and work done before give the same fleet.

    Args:
        problem: The problem.
        budget: How much may be done.
        meter: Of several problems that share ``budget.work``; None for one of its own.
    """
    useful, offers = narrowed(problem)
    fleet = _solve(useful, budget, Meter(budget.work) if meter is None else meter)
    purchases = tuple(
        Purchase(Pattern(int(offers[pattern.offer]), pattern.pods), nodes)
        for pattern, nodes in fleet.purchases
    )
    return replace(fleet, purchases=purchases)


def _solve(problem: FleetProblem, budget: Budget, meter: Meter) -> Fleet:
    relaxed = relax(problem, may_leave_out=True)
    worth = relaxed.worth + 1e-4 * _cheapest_shares(problem)
    greedy = repair(problem, choose_greedily(problem, worth))
    best, bound, bound_by, rounds = greedy, relaxed.price, RELAXATION, 0
    least = _least_whole_node(problem)
    if greedy and _cost(problem, greedy) <= least:
        bound, bound_by = least, ONE_NODE
    elif budget.rounds and greedy and _cost(problem, greedy) > bound * (1 + 1e-9):
        columns = Columns(problem, relaxed.worth, bound, meter)
        columns.add(one.pattern for one in greedy)
        columns.generate(budget)
        rounds = columns.rounds
        if columns.bound > bound:
            bound, bound_by = columns.bound, COLUMNS
        for rounded in columns.round_off(budget):
            repaired = repair(problem, rounded)
            if _cost(problem, repaired) < _cost(problem, best):
                best = repaired
    placed = placed_by(problem, best)
    unplaced = problem.demand - placed
    if unplaced.any():
        bound = relax(replace(problem, demand=placed), may_leave_out=False).price if placed.any() else 0.0
        bound_by = RELAXATION
    return Fleet(
        purchases=best,
        price=price_of(problem, best),
        bound=bound,
        bound_by=bound_by,
        unplaced=unplaced,
        greedy_price=price_of(problem, greedy),
        rounds=rounds,
        cut=meter.cut,
    )


def _least_whole_node(problem: FleetProblem) -> float:
    """The price of the cheapest node for the pod that is hardest to place: no choice that places every pod that can be costs less."""
    cheapest = np.where(problem.capacity > 0, problem.prices[None], np.inf).min(axis=1, initial=np.inf)
    return float(cheapest[np.isfinite(cheapest)].max(initial=0.0))


def _cost(problem: FleetProblem, purchases: tuple[Purchase, ...]) -> float:
    """The price with the penalty for each pod left out."""
    left_out = int((problem.demand - placed_by(problem, purchases)).sum())
    return price_of(problem, purchases) + penalty_of(problem) * left_out


def _cheapest_shares(problem: FleetProblem) -> FloatVector:
    """(classes,): the price of the part of a node that one pod takes, on the cheapest offer; never quite 0."""
    shares = (problem.requests[:, None, :] / np.maximum(problem.stock[None], 1)).max(axis=2)
    prices = np.where(problem.capacity > 0, shares * problem.prices[None], np.inf).min(axis=1, initial=np.inf)
    found: FloatVector = np.where(np.isfinite(prices), prices, 0.0) + 1e-3
    return found
