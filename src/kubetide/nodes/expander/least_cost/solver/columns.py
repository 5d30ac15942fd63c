"""Column generation: adds patterns while one is worth more than it costs, and finds the best mix of them.

The restricted master chooses numbers of nodes by pattern; its duals say what a pod is worth; the
knapsacks of the offers look for patterns that are worth more than their node. What they prove about
all patterns bounds the price of every choice (Farley's bound where there is no limit that binds,
Lagrange's otherwise). Worths are smoothed towards those of the best bound (Wentges).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubetide.nodes.expander.least_cost.solver.knapsacks import Filling, Knapsack
from kubetide.nodes.expander.least_cost.solver.linear import INFINITE, Program, Solution
from kubetide.nodes.expander.least_cost.solver.problem import (
    Budget,
    FleetProblem,
    FloatVector,
    Meter,
    Pattern,
    Purchase,
)
from kubetide.nodes.expander.least_cost.solver.relaxation import penalty_of
from kubetide.units.vectors import Int64Vector

_SMOOTHING = 0.7
_LEAST_GAIN = 1e-6
_FOR_PATTERNS = 0.5
"""The share of the work that may be done before whole nodes are looked for."""
_CLOSE_ENOUGH = 5e-4
"""How near the best mix need come to the bound; whole numbers of nodes cost more than that."""


class Columns:
    """The known patterns, and the program that mixes them.

    Attributes:
        bound: The best bound proved on the price, with left-out pods at their penalty.
        rounds: Rounds made.
    """

    def __init__(self, problem: FleetProblem, worth: FloatVector, bound: float, meter: Meter) -> None:
        self._problem = problem
        self._meter = meter
        self._patterns: dict[Pattern, None] = {}
        self._knapsacks = [Knapsack(problem, offer, meter) for offer in range(len(problem.prices))]
        self._master = _master(problem, problem.demand, problem.most, problem.left)
        self._centre = worth
        self._searches = 0
        self.bound = bound
        self.rounds = 0

    def add(self, patterns: Iterable[Pattern]) -> int:
        """Add the new ones among these patterns and return their number."""
        new = [one for one in dict.fromkeys(patterns) if one not in self._patterns and any(one.pods)]
        self._patterns.update(dict.fromkeys(new))
        _add_patterns(self._master, self._problem, new)
        return len(new)

    def generate(self, budget: Budget) -> None:
        """Run rounds until no pattern is worth more than its price, or the budget is used up.

        A part of the work is left for ``round_off``, without which the patterns are of no use.
        """
        smoothing = _SMOOTHING
        while self.rounds < budget.rounds and self._meter.allows(_FOR_PATTERNS):
            self.rounds += 1
            solution = self._master.solve(meter=self._meter)
            if solution.objective <= self.bound * (1 + _CLOSE_ENOUGH):
                return
            duals = _split(self._problem, solution.duals)
            worth = smoothing * self._centre + (1 - smoothing) * duals[0]
            added, exhausted = self._round(worth, duals, budget, last=self.rounds == budget.rounds)
            if exhausted:
                return
            if added:
                smoothing = _SMOOTHING
            elif smoothing == 0.0:
                return
            else:
                smoothing = 0.0 if smoothing < 0.2 else smoothing / 2

    def _round(
        self, worth: FloatVector, duals: tuple[FloatVector, FloatVector], budget: Budget, *, last: bool
    ) -> tuple[int, bool]:
        """Look for patterns at these worths; return how many were new, and whether the searches are used up.

        Searches are made where rounding finds nothing new, and in the last round for the bound.
        """
        problem = self._problem
        extra = duals[1]
        at_most = np.zeros(len(problem.prices))
        above: list[int] = []
        added = 0
        for offer, knapsack in enumerate(self._knapsacks):
            price = problem.prices[offer] + extra[offer]
            filling = knapsack.estimate(worth)
            at_most[offer] = filling.at_most
            if filling.at_most <= price * (1 + _LEAST_GAIN):
                continue
            added += self._gaining(filling, duals, offer)
            above.append(offer)
        if not added or last:
            for offer in above:
                if self._searches >= budget.searches or not self._meter.allows(_FOR_PATTERNS):
                    return added, True
                self._searches += 1
                filling = self._knapsacks[offer].search(worth, nodes=budget.nodes)
                at_most[offer] = min(at_most[offer], filling.at_most)
                added += self._gaining(filling, duals, offer)
        self._prove(worth, extra, at_most)
        return added, False

    def _gaining(self, filling: Filling, duals: tuple[FloatVector, FloatVector], offer: int) -> int:
        price = self._problem.prices[offer] + duals[1][offer]
        return self.add(
            pattern
            for pattern in filling.patterns
            if duals[0] @ np.array(pattern.pods, np.float64) > price * (1 + _LEAST_GAIN)
        )

    def _prove(self, worth: FloatVector, extra: FloatVector, at_most: FloatVector) -> None:
        """Take over the bound that follows from what no pattern is worth more than."""
        problem = self._problem
        if extra.any():
            # Limits bind: what a pattern is worth above its price counts for as many nodes as may be bought.
            over = np.maximum(at_most - problem.prices, 0.0)
            bound = float(problem.demand @ worth - problem.most @ over)
        else:
            paid = problem.prices > 0
            if (at_most[~paid] > 0).any():
                return
            bound = float(problem.demand @ worth) / max(
                1.0, float((at_most[paid] / problem.prices[paid]).max(initial=1.0))
            )
        if bound > self.bound:
            self.bound, self._centre = bound, worth

    def round_off(self, budget: Budget) -> list[tuple[Purchase, ...]]:
        """Return choices of whole nodes: the mix rounded down or a part of it, and known patterns for the rest."""
        patterns = list(self._patterns)
        mix = self._master.solve().values[len(self._problem.demand) :]
        whole = np.floor(mix + 1e-6).astype(np.int64)
        found: list[tuple[Purchase, ...]] = []
        for base in dict.fromkeys((tuple(whole.tolist()), tuple(np.maximum(whole - 1, 0).tolist()))):
            if not self._meter.allows():
                break
            numbers = self._completed(patterns, np.array(base, np.int64), budget)
            found.append(tuple(Purchase(one, int(n)) for one, n in zip(patterns, numbers, strict=True) if n))
        return found

    def _completed(self, patterns: list[Pattern], base: Int64Vector, budget: Budget) -> Int64Vector:
        """Return numbers of nodes by pattern: those base, and what an integer program adds to them."""
        problem = self._problem
        most, left = problem.most.copy(), problem.left.copy()
        covered = np.zeros(len(problem.demand), np.int64)
        for pattern, number in zip(patterns, base, strict=True):
            most[pattern.offer] -= number
            left -= problem.uses[:, pattern.offer] * number
            covered += np.array(pattern.pods, np.int64) * number
        rest = np.maximum(problem.demand - covered, 0)
        if not rest.any():
            return base
        program = _master(problem, rest, most, left)
        _add_patterns(program, problem, patterns)
        program.make_integer(np.arange(len(problem.demand), len(program)))
        solution: Solution = program.solve(nodes=budget.nodes, meter=self._meter)
        if not solution.found:
            return base
        return base + np.round(solution.values[len(problem.demand) :]).astype(np.int64)


def _master(problem: FleetProblem, demand: Int64Vector, most: Int64Vector, left: Int64Vector) -> Program:
    """Rows: demand by class, most nodes by offer, limits. Columns so far: a pod left out, by class."""
    classes = len(demand)
    program = Program(
        np.concatenate([demand.astype(np.float64), np.full(len(most) + len(left), -INFINITE)]),
        np.concatenate([np.full(classes, INFINITE), most.astype(np.float64), left.astype(np.float64)]),
    )
    every = np.arange(classes)
    program.add(
        np.full(classes, penalty_of(problem)),
        np.full(classes, INFINITE),
        np.arange(classes + 1),
        every,
        np.ones(classes),
    )
    return program


def _add_patterns(program: Program, problem: FleetProblem, patterns: Iterable[Pattern]) -> None:
    costs: list[float] = []
    starts, rows, entries = [0], [], []
    first_offer = len(problem.demand)
    first_limit = first_offer + len(problem.prices)
    for offer, pods in patterns:
        costs.append(float(problem.prices[offer]))
        for at, number in enumerate(pods):
            if number:
                rows.append(at)
                entries.append(float(number))
        rows.append(first_offer + offer)
        entries.append(1.0)
        for at, use in enumerate(problem.uses[:, offer].tolist()):
            if use:
                rows.append(first_limit + at)
                entries.append(float(use))
        starts.append(len(rows))
    if costs:
        program.add(
            np.array(costs),
            np.full(len(costs), INFINITE),
            np.array(starts, np.int64),
            np.array(rows, np.int64),
            np.array(entries),
        )


def _split(problem: FleetProblem, duals: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return (classes,) what a pod is worth, and (offers,) what a node costs beside its price because limits bind."""
    classes, offers = len(problem.demand), len(problem.prices)
    extra = -duals[classes : classes + offers] - duals[classes + offers :] @ problem.uses
    return np.maximum(duals[:classes], 0.0), np.maximum(extra, 0.0)
