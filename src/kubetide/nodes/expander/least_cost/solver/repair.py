"""Small repairs of a choice: pods placed twice, nodes larger than needed, pods left out."""

from __future__ import annotations

import numpy as np

from kubetide.nodes.expander.least_cost.solver.greedy import fill
from kubetide.nodes.expander.least_cost.solver.problem import FleetProblem, Pattern, Purchase, placed_by
from kubetide.units.vectors import Int64Vector


def repair(problem: FleetProblem, purchases: tuple[Purchase, ...]) -> tuple[Purchase, ...]:
    """Return a choice that places each pod once, at least the same pods, and costs no more."""
    return _merged(_topped_up(problem, _cheaper(problem, _trimmed(problem, purchases))))


def _trimmed(problem: FleetProblem, purchases: tuple[Purchase, ...]) -> list[Purchase]:
    """Remove surplus pods, and nodes that are empty then; expensive nodes keep theirs first."""
    rest = problem.demand.copy()
    found: list[Purchase] = []
    for pattern, number in sorted(
        purchases, key=lambda one: (-problem.prices[one.pattern.offer], one.pattern)
    ):
        pods = np.array(pattern.pods, np.int64)
        used = pods > 0
        whole = min(number, int((rest[used] // pods[used]).min(initial=number)))
        if whole:
            found.append(Purchase(pattern, whole))
            rest -= pods * whole
        for _ in range(number - whole):
            fits = np.minimum(pods, rest)
            if fits.any():
                found.append(Purchase(Pattern(pattern.offer, tuple(fits.tolist())), 1))
                rest -= fits
    return found


def _cheaper(problem: FleetProblem, purchases: list[Purchase]) -> list[Purchase]:
    """Move pods to the cheapest offer that holds them, as far as the limits let."""
    most, left = problem.most.copy(), problem.left.copy()
    for one in purchases:
        most[one.pattern.offer] -= one.nodes
        left -= problem.uses[:, one.pattern.offer] * one.nodes
    found: list[Purchase] = []
    for pattern, number in purchases:
        offer = _cheapest_for(problem, pattern, most)
        moved = 0
        if offer != pattern.offer:
            more = problem.uses[:, offer] - problem.uses[:, pattern.offer]
            within = [int(there // use) for use, there in zip(more, left, strict=True) if use > 0]
            moved = max(0, min(number, int(most[offer]), *within))
            most[offer] -= moved
            most[pattern.offer] += moved
            left -= more * moved
        if moved:
            found.append(Purchase(Pattern(offer, pattern.pods), moved))
        if number > moved:
            found.append(Purchase(pattern, number - moved))
    return found


def _cheapest_for(problem: FleetProblem, pattern: Pattern, most: Int64Vector) -> int:
    """Return the cheapest offer that holds the pods and of which there are more; the pattern's own if it is that."""
    pods = np.array(pattern.pods, np.int64)
    holds = (problem.stock >= pods @ problem.requests).all(axis=1) & (most > 0)
    holds &= problem.allowed[pods > 0].all(axis=0)
    prices = np.where(holds, problem.prices, np.inf)
    cheapest = int(prices.argmin())
    return cheapest if prices[cheapest] < problem.prices[pattern.offer] else pattern.offer


def _topped_up(problem: FleetProblem, purchases: list[Purchase]) -> list[Purchase]:
    """Put pods that have no place on nodes with free capacity."""
    missing = problem.demand - placed_by(problem, tuple(purchases))
    requests: list[list[int]] = problem.requests.tolist()
    found: list[Purchase] = []
    for pattern, number in purchases:
        left = number
        pods = np.array(pattern.pods, np.int64)
        free = (problem.stock[pattern.offer] - pods @ problem.requests).tolist()
        while left and missing.any():
            order = np.flatnonzero((missing > 0) & problem.allowed[:, pattern.offer]).tolist()
            more = np.array(fill(requests, free, order, missing.tolist()), np.int64)
            if not more.any():
                break
            found.append(Purchase(Pattern(pattern.offer, tuple((pods + more).tolist())), 1))
            missing -= more
            left -= 1
        if left:
            found.append(Purchase(pattern, left))
    return found


def _merged(purchases: list[Purchase]) -> tuple[Purchase, ...]:
    numbers: dict[Pattern, int] = {}
    for pattern, nodes in purchases:
        numbers[pattern] = numbers.get(pattern, 0) + nodes
    return tuple(Purchase(pattern, nodes) for pattern, nodes in sorted(numbers.items()))
