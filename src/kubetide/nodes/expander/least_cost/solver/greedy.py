"""The greedy choice: always the node with the most worth per price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubetide.nodes.expander.least_cost.solver.problem import FleetProblem, FloatVector, Pattern, Purchase
from kubetide.units.vectors import Int64Vector


def fill(
    requests: Sequence[Sequence[int]], stock: Sequence[int], order: Iterable[int], most: Sequence[int]
) -> tuple[int, ...]:
    """Fill a node with pods, class by class in the order given, as many of each as fit.

    Args:
        requests: What a pod of each class takes of each resource.
        stock: What the node has.
        order: Classes; those left out are not used.
        most: Most pods of each class.
    """
    taken = [0] * len(requests)
    free = list(stock)
    for index in order:
        number = most[index]
        request = requests[index]
        for asked, there in zip(request, free, strict=True):
            if asked and number * asked > there:
                number = there // asked
        if number > 0:
            taken[index] = number
            free = [there - number * asked for asked, there in zip(request, free, strict=True)]
    return tuple(taken)


def orders(worth: FloatVector, shares: Sequence[FloatVector]) -> list[list[int]]:
    """Return orders of the classes with a positive worth: by worth, and by worth per resource for given shares.

    A share says what part of a node one pod of each class takes, by one way of weighing resources.
    """
    found: list[list[int]] = []
    for share in (*shares, np.ones_like(worth)):
        ranked = np.argsort(-(worth / np.maximum(share, 1e-9)), kind="stable")
        order = [int(one) for one in ranked if worth[one] > 1e-9]
        if order and order not in found:
            found.append(order)
    return found


def choose_greedily(problem: FleetProblem, worth: FloatVector) -> tuple[Purchase, ...]:
    """Buy node by node, greatest worth per price first, until no offer holds another pod.

    Args:
        problem: The problem.
        worth: (classes,) what placing a pod of each class is worth, by which nodes are filled.
    """
    rest = problem.demand.copy()
    most, left = problem.most.copy(), problem.left.copy()
    requests = problem.requests.tolist()
    by_offer = [_orders_of(problem, worth, offer) for offer in range(len(problem.prices))]
    found: list[Purchase] = []
    # What an offer would hold changes only when pods that it would hold are gone.
    best: dict[int, tuple[float, Pattern]] = {}
    while rest.any():
        chosen: tuple[float, Pattern] | None = None
        for offer, ranked in enumerate(by_offer):
            if most[offer] < 1 or (problem.uses[:, offer] > left).any():
                continue
            known = best.get(offer)
            if known is None or (np.array(known[1].pods, np.int64) > rest).any():
                known = best[offer] = _best_filling(problem, offer, ranked, worth, requests, rest)
            if known[0] > 0 and (chosen is None or known[0] > chosen[0]):
                chosen = known
        if chosen is None:
            break
        pattern = chosen[1]
        number = _how_often(problem, pattern, rest, most, left)
        found.append(Purchase(pattern, number))
        rest -= np.array(pattern.pods, np.int64) * number
        most[pattern.offer] -= number
        left -= problem.uses[:, pattern.offer] * number
    return tuple(found)


def _orders_of(problem: FleetProblem, worth: FloatVector, offer: int) -> list[list[int]]:
    shares = problem.requests / np.maximum(problem.stock[offer], 1)
    usable = np.where(problem.capacity[:, offer] > 0, worth, 0.0)
    return orders(usable, [shares.max(axis=1), shares.sum(axis=1), *shares.T])


def _best_filling(
    problem: FleetProblem,
    offer: int,
    ranked: Sequence[Sequence[int]],
    worth: FloatVector,
    requests: Sequence[Sequence[int]],
    rest: Int64Vector,
) -> tuple[float, Pattern]:
    """Return the worth for the price and the pattern of the best of several ways to fill a node."""
    stock, most = problem.stock[offer].tolist(), rest.tolist()
    price = max(float(problem.prices[offer]), 1e-9)
    best = 0.0, Pattern(offer, (0,) * len(requests))
    for order in ranked:
        pods = fill(requests, stock, order, most)
        value = float(worth @ np.array(pods, np.float64)) / price
        if value > best[0]:
            best = value, Pattern(offer, pods)
    return best


def _how_often(
    problem: FleetProblem, pattern: Pattern, rest: Int64Vector, most: Int64Vector, left: Int64Vector
) -> int:
    pods = np.array(pattern.pods, np.int64)
    number = min(int((rest[pods > 0] // pods[pods > 0]).min()), int(most[pattern.offer]))
    uses = problem.uses[:, pattern.offer]
    for use, there in zip(uses, left, strict=True):
        if use > 0:
            number = min(number, int(there // use))
    return number
