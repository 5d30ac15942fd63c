"""The linear relaxation: pods and nodes may be divided. Its price is a lower bound of every real choice.

Pods of a class are shared out over the offers on which one of them fits; of each offer so much is
bought that cpu, memory, devices and places for pods suffice in sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubetide.nodes.expander.least_cost.solver.linear import INFINITE, Program
from kubetide.nodes.expander.least_cost.solver.problem import FleetProblem, FloatVector


class Relaxation(NamedTuple):
    """The price, and the worth at it of one more pod of each class and one more unit of each limit."""

    price: float
    worth: FloatVector


def penalty_of(problem: FleetProblem) -> float:
    """Return the price of leaving a pod out: more than any node, so that every pod that fits is placed."""
    return 2.0 * float(problem.prices.max(initial=0.0)) + 1.0


def relax(problem: FleetProblem, *, may_leave_out: bool, presolve: bool = True) -> Relaxation:
    """Solve the relaxation.

    Args:
        problem: The problem.
        may_leave_out: Whether pods may be left out at ``penalty_of`` each; without this they must all fit.
        presolve: As in ``Program.solve``.
    """
    classes, resources = problem.requests.shape
    offers = len(problem.prices)
    scale = np.maximum(problem.stock.max(axis=0, initial=1), 1).astype(np.float64)
    stock = problem.stock / scale
    requests = problem.requests / scale
    limits = len(problem.left)
    unit = np.maximum(problem.left, 1).astype(np.float64)
    first_limit = classes + offers * resources
    program = Program(
        np.concatenate([problem.demand.astype(np.float64), np.full(offers * resources + limits, -INFINITE)]),
        np.concatenate([np.full(classes, INFINITE), np.zeros(offers * resources), problem.left / unit]),
    )
    # Nodes: a column each offer, with what it gives of each resource and takes of each limit.
    below = np.arange(offers)[:, None] * resources + classes + np.arange(resources)[None]
    above = np.broadcast_to(first_limit + np.arange(limits)[None], (offers, limits))
    program.add(
        problem.prices,
        problem.most.astype(np.float64),
        np.arange(offers + 1) * (resources + limits),
        np.concatenate([below, above], axis=1).ravel(),
        np.concatenate([-stock, (problem.uses / unit[:, None]).T], axis=1).ravel(),
    )
    # Pods: a column each class and offer on which one fits.
    pods, on = np.nonzero(problem.capacity > 0)
    rows = np.concatenate([pods[:, None], below[on]], axis=1)
    program.add(
        np.zeros(len(pods)),
        np.full(len(pods), INFINITE),
        np.arange(len(pods) + 1) * (resources + 1),
        rows.ravel(),
        np.concatenate([np.ones((len(pods), 1)), requests[pods]], axis=1).ravel(),
    )
    if may_leave_out:
        every = np.arange(classes)
        program.add(
            np.full(classes, penalty_of(problem)),
            np.full(classes, INFINITE),
            np.arange(classes + 1),
            every,
            np.ones(classes),
        )
    solution = program.solve(presolve=presolve)
    return Relaxation(solution.objective, np.maximum(solution.duals[:classes], 0.0))
