"""The best filling of one node per offer, given the worth of each pod: the knapsacks of column generation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubetide.nodes.expander.least_cost.solver.greedy import fill, orders
from kubetide.nodes.expander.least_cost.solver.linear import INFINITE, Program
from kubetide.nodes.expander.least_cost.solver.problem import FleetProblem, FloatVector, Meter, Pattern
from kubetide.units.vectors import Int64Vector

_CLOSE_ENOUGH = 2e-3
"""A pattern need not be the very best: the bound holds all the same."""


class Filling(NamedTuple):
    """Good patterns of an offer, and an upper bound of the worth of any pattern."""

    patterns: tuple[Pattern, ...]
    at_most: float


class Knapsack:
    """The fillings of one node of one offer."""

    def __init__(self, problem: FleetProblem, offer: int, meter: Meter) -> None:
        self._offer = offer
        self._meter = meter
        self._classes: Int64Vector = np.flatnonzero(problem.capacity[:, offer] > 0)
        self._capacity = problem.capacity[self._classes, offer]
        self._stock = problem.stock[offer]
        self._shares = problem.requests[self._classes] / np.maximum(self._stock, 1)
        self._requests: list[list[int]] = problem.requests[self._classes].tolist()
        self._width = len(problem.demand)
        self._relaxed: Program | None = None
        self._whole: Program | None = None

    def estimate(self, worth: FloatVector) -> Filling:
        """Return the value of the linear relaxation, and patterns that are rounded from it.

        Args:
            worth: (classes,) what a pod of each class is worth.
        """
        own = worth[self._classes]
        if not (own > 0).any():
            return Filling((), 0.0)
        if self._relaxed is None:
            self._relaxed = self._program()
        self._relaxed.set_costs(own)
        solution = self._relaxed.solve(meter=self._meter)
        weights = np.maximum(solution.duals, 0.0)
        found: list[Pattern] = []
        shares = [self._shares @ weights]
        shares += [shares[0] + self._shares[:, at] * weights.sum() for at in range(len(self._stock))]
        whole = np.floor(solution.values + 1e-9).astype(np.int64)
        for number, order in enumerate(orders(own, shares)):
            if number == 0:
                found.append(self._rounded(whole, order))
            found.append(
                self._pattern(fill(self._requests, self._stock.tolist(), order, self._capacity.tolist()))
            )
        return Filling(tuple(dict.fromkeys(found)), solution.objective)

    def search(self, worth: FloatVector, *, nodes: int) -> Filling:
        """Return the best pattern that branch and bound finds within so many nodes, and the bound it proves."""
        own = worth[self._classes]
        if self._whole is None:
            self._whole = self._program()
            self._whole.make_integer(np.arange(len(self._classes)))
        self._whole.set_costs(own)
        solution = self._whole.solve(nodes=nodes, close_enough=_CLOSE_ENOUGH, meter=self._meter)
        if not solution.found:
            return Filling((), solution.bound)
        taken = np.round(solution.values).astype(np.int64)
        if (taken @ np.array(self._requests, np.int64) > self._stock).any():
            return Filling((), solution.bound)  # within the solver's tolerance only
        return Filling((self._pattern(tuple(taken.tolist())),), solution.bound)

    def _program(self) -> Program:
        count, resources = self._shares.shape
        program = Program(np.full(resources, -INFINITE), (self._stock > 0).astype(np.float64), maximise=True)
        program.add(
            np.zeros(count),
            self._capacity.astype(np.float64),
            np.arange(count + 1) * resources,
            np.tile(np.arange(resources), count),
            self._shares.ravel(),
        )
        return program

    def _rounded(self, whole: Int64Vector, order: list[int]) -> Pattern:
        free = self._stock - whole @ np.array(self._requests, np.int64)
        more = fill(self._requests, np.maximum(free, 0).tolist(), order, (self._capacity - whole).tolist())
        return self._pattern(tuple((whole + np.array(more, np.int64)).tolist()))

    def _pattern(self, own: tuple[int, ...]) -> Pattern:
        pods = np.zeros(self._width, np.int64)
        pods[self._classes] = own
        return Pattern(self._offer, tuple(pods.tolist()))
