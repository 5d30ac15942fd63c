"""The purchase problem: classes of pods, offers of nodes, and limits, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubetide.units.vectors import Int64Vector

Int64Matrix = NDArray[np.int64]
BoolMatrix = NDArray[np.bool_]
FloatVector = NDArray[np.float64]
FloatMatrix = NDArray[np.float64]

MOST = 1 << 40
"""More of anything than can be asked for."""


class Budget(NamedTuple):
    """The allowed work; counted, not timed, so that the same input gives the same answer.

    Attributes:
        rounds: Most rounds of column generation; with 0 the greedy choice stands.
        searches: Most knapsack searches in all those rounds.
        nodes: Most branch-and-bound nodes of one search.
        work: Most work on all programs together, see ``Meter``: 10,000 take 0.3 to 0.8 s.
    """

    rounds: int = 40
    searches: int = 120
    nodes: int = 60
    work: int = 10_000


class Meter:
    """The work done on programs; a unit is a simplex iteration over a hundred rows.

    Attributes:
        most: How much may be done.
        used: How much was done. The last program may have gone a little over ``most``.
        cut: Whether anything was left undone for it.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self.cut = False

    @property
    def left(self) -> int:
        """The work that may still be done."""
        return max(0, self.most - self.used)

    def add(self, iterations: int, rows: int) -> None:
        """Count a program; the start of one counts as ten iterations."""
        self.used += (max(0, iterations) + 10) * (100 + rows) // 100

    def allows(self, share: float = 1.0) -> bool:
        """Return whether less than this share of the work is done; if not, note that something is cut."""
        allowed = self.used < self.most * share
        self.cut = self.cut or not allowed
        return allowed


@dataclass(frozen=True, kw_only=True)
class FleetProblem:
    """Pods of several classes to place on new nodes of several offers at the least price.

    Attributes:
        demand: (classes,) how many pods there are of each class.
        requests: (classes, resources) what one pod takes, 0 or more; one of the resources is the pod itself.
        stock: (offers, resources) what a new node has for them.
        prices: (offers,) price of one node, finite, 0 or more.
        most: (offers,) most nodes of each offer.
        allowed: (classes, offers) whether a node of the offer takes the class, amounts apart.
        uses: (limits, offers) what a node of each offer takes of each limit that holds for all together.
        left: (limits,) what is left of those limits.
    """

    demand: Int64Vector
    requests: Int64Matrix
    stock: Int64Matrix
    prices: FloatVector
    most: Int64Vector
    allowed: BoolMatrix
    uses: Int64Matrix
    left: Int64Vector

    @cached_property
    def capacity(self) -> Int64Matrix:
        """(classes, offers): pods of one class on an empty node, at most the demand. Not to be changed."""
        asked = self.requests[:, None, :]
        fits = np.where(asked > 0, self.stock[None] // np.maximum(asked, 1), MOST).min(axis=2)
        fits = np.where(self.allowed, np.maximum(fits, 0), 0)
        bounded: Int64Matrix = np.minimum(fits, self.demand[:, None])
        return bounded


_PREFERENCE = 1e-6
"""The share of its price that a node of half the price is made cheaper by."""


class Pattern(NamedTuple):
    """A way to fill a node: its offer, and the pods of each class on it."""

    offer: int
    pods: tuple[int, ...]


class Purchase(NamedTuple):
    """A number of nodes that are filled in the same way."""

    pattern: Pattern
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The purchases, and the bound of their price.

    Attributes:
        purchases: Patterns with numbers of nodes; no node is empty.
        price: Of all nodes together.
        bound: No choice that places the same pods within the same limits costs less.
        bound_by: What proves the bound: ``linear relaxation``, ``column generation``, or the price of ``one whole node`` that is
            needed in any case.
        unplaced: (classes,) pods for which no node is left within the limits.
        greedy_price: What the greedy choice alone would have cost; it may have placed other pods.
        rounds: Rounds of column generation that were made.
        cut: Whether the budget of work ended the search before its end.
    """

    purchases: tuple[Purchase, ...]
    price: float
    bound: float
    bound_by: str
    unplaced: Int64Vector
    greedy_price: float
    rounds: int
    cut: bool = False

    @property
    def gap(self) -> float:
        """How far the price is above the bound, as a share of the bound; 0 if both are 0."""
        return max(0.0, self.price / self.bound - 1.0) if self.bound > 0 else 0.0


def with_smaller_first(problem: FleetProblem) -> FleetProblem:
    """Return the problem with smaller nodes a millionth cheaper: of choices for one price, that of small nodes is then the cheapest.

    No price rises, so a lower bound of the new problem holds for the old one. Nodes without a price stay as they are.
    """
    paid = problem.prices > 0
    halvings = np.zeros_like(problem.prices)
    halvings[paid] = np.log2(problem.prices.max(initial=0.0) / problem.prices[paid])
    return replace(problem, prices=problem.prices * (1 - _PREFERENCE * halvings))


def price_of(problem: FleetProblem, purchases: tuple[Purchase, ...]) -> float:
    """Return the price of all nodes together."""
    return float(sum(problem.prices[one.pattern.offer] * one.nodes for one in purchases))


def placed_by(problem: FleetProblem, purchases: tuple[Purchase, ...]) -> Int64Vector:
    """Return (classes,): the pods that the nodes hold."""
    placed = np.zeros(len(problem.demand), np.int64)
    for one in purchases:
        placed += np.array(one.pattern.pods, np.int64) * one.nodes
    return placed


def check(problem: FleetProblem, purchases: tuple[Purchase, ...]) -> str:
    """Return what a choice violates: stock, demand or limits; empty if nothing."""
    nodes = np.zeros(len(problem.prices), np.int64)
    for one in purchases:
        offer, pods = one.pattern.offer, np.array(one.pattern.pods, np.int64)
        nodes[offer] += one.nodes
        if not any(one.pattern.pods) or one.nodes < 1:
            return f"offer {offer}: a node without pods, or no node"
        if (pods @ problem.requests > problem.stock[offer]).any():
            return f"offer {offer}: {one.pattern.pods} take more than a node has"
        if (pods[~problem.allowed[:, offer]] > 0).any():
            return f"offer {offer}: {one.pattern.pods} has pods that it does not take"
    if (nodes > problem.most).any() or (problem.uses @ nodes > problem.left).any():
        return f"{nodes.tolist()} nodes pass a limit"
    if (placed_by(problem, purchases) > problem.demand).any():
        return "more pods are placed than there are"
    return ""


def no_limits(offers: int) -> dict[str, Any]:
    """Return the fields of a problem without limits over all offers."""
    return {"uses": np.zeros((0, offers), np.int64), "left": np.zeros(0, np.int64)}
