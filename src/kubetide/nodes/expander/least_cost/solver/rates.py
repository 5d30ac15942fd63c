"""Worth per amount for any number of classes: the linear relaxation by resource, not by pod.

Pods that the same offers take are one heap of each resource, which is shared out over those offers by
itself. That leaves out more than ``relax`` does, so the price is a bound too, a lower one; how large the program is
depends on offers and not on pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kubetide.nodes.expander.least_cost.solver.dominance import narrowed
from kubetide.nodes.expander.least_cost.solver.problem import FleetProblem, FloatVector
from kubetide.nodes.expander.least_cost.solver.relaxation import relax

_PARTS = 1000
"""In how many parts the smallest stock is divided: heaps are counted in whole parts, rounded down."""
_LEAST = 1e-6
"""Share of the cheapest price that a pod is worth which asks for no expensive resource."""


class Rates(NamedTuple):
    """Prices of amounts.

    Attributes:
        worth: (classes,) what one pod's amounts are worth.
        promise: (offers,) no node of the offer can hold more worth for its price.
        price: No choice that places all pods costs less, but for ``may_leave_out``.
    """

    worth: FloatVector
    promise: FloatVector
    price: float


def rates_of(problem: FleetProblem, patterns: Sequence[int], *, may_leave_out: bool) -> Rates:
    """Return the rates.

    Args:
        problem: The problem.
        patterns: By class, a number that is the same for classes that the same offers take.
        may_leave_out: As in ``relax``.
    """
    of_class = np.array(patterns, np.int64)
    _, first, at = np.unique(of_class, return_index=True, return_inverse=True)
    resources = problem.requests.shape[1]
    asked = problem.requests * problem.demand[:, None]
    heaps = np.zeros((len(first), resources), np.int64)
    np.add.at(heaps, at, asked)
    stock = np.where(problem.stock > 0, problem.stock, np.iinfo(np.int64).max)
    part = np.maximum(1, stock.min(axis=0, initial=np.iinfo(np.int64).max) // _PARTS)
    by_resource = replace(
        problem,
        demand=(heaps // part).ravel(),
        requests=np.tile(np.diag(part), (len(first), 1)),
        allowed=np.repeat(problem.allowed[first], resources, axis=0),
        most=np.full(len(problem.prices), heaps[:, 0].sum() if resources else 0),
    )
    by_resource, _ = narrowed(by_resource, nodes=int(heaps.sum(axis=0)[0]))
    relaxed = relax(by_resource, may_leave_out=may_leave_out, presolve=False)
    rate = relaxed.worth.reshape(len(first), resources) / part
    least = _LEAST * float(problem.prices.min(initial=1.0)) + 1e-12
    worth = (problem.requests * rate[at]).sum(axis=1) + least
    # Of each resource a node may hold the most expensive, each of another heap.
    held = np.where(problem.allowed[first][:, :, None], rate[:, None] * problem.stock[None], 0.0).max(
        axis=0, initial=0.0
    )
    pods = problem.demand.sum() if resources == 0 else problem.stock[:, 0]
    promise = (held.sum(axis=1) + least * pods) / np.maximum(problem.prices, 1e-9)
    return Rates(worth, promise, relaxed.price)
