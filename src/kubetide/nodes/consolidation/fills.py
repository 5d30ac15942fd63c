"""The best new node for the pods of several old ones: computed in columns, checked by the filters afterwards.

What a set of nodes saves over its expected stay, less what its disruption and the new node cost, must be more than
nothing. A saving has two parts. What the new machine costs less for the same capacity is saved for the whole stay. What
is saved as there is less free capacity is saved only until the next pods need it. No node is replaced by its equal: ``allowed`` leaves out groups whose nodes equal the candidate and are not
cheaper, and a new node costs less than those that it replaces. So the price of the fleet falls with every fill.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatVector = NDArray[np.float64]
FloatMatrix = NDArray[np.float64]
BoolMatrix = NDArray[np.bool_]

MOST_NODES = 10
"""Most nodes that one new node replaces."""


class Candidates(NamedTuple):
    """Nodes in columns.

    Attributes:
        prices: An hour.
        stays: Hours for which each is expected to stay.
        disruptions: What evicting its pods counts for.
        loads: (nodes, resources) what its pods ask for.
        capacities: (nodes, resources) what it offers.
        calms: Hours for which its free capacity is expected not to be needed.
    """

    prices: FloatVector
    stays: FloatVector
    disruptions: FloatVector
    loads: FloatMatrix
    capacities: FloatMatrix
    calms: FloatVector

    @property
    def values(self) -> FloatVector:
        """The saving of each without a new node."""
        found: FloatVector = self.prices * self.stays - self.disruptions
        return found


class Targets(NamedTuple):
    """Groups in columns: hourly price, (groups, resources) capacity of a new node, hours in which old and new run."""

    prices: FloatVector
    stocks: FloatMatrix
    overlaps: FloatVector


class Fill(NamedTuple):
    """One new node of ``target`` replaces ``nodes``; ``value`` is the saving over the stay, less the disruption."""

    target: int
    nodes: tuple[int, ...]
    value: float


def equivalents(candidates: Candidates, targets: Targets) -> FloatMatrix:
    """Return (nodes, groups): the price of a node's capacity on nodes of the group; at most the node's own price."""
    stocks = np.maximum(targets.stocks, 1e-9)[None]
    ratios = (candidates.capacities[:, None, :] / stocks).max(axis=2, initial=0.0)
    found: FloatMatrix = np.minimum(candidates.prices[:, None], ratios * targets.prices[None])
    return found


def best_fill(
    candidates: Candidates,
    targets: Targets,
    allowed: BoolMatrix,
    most_nodes: int = MOST_NODES,
) -> Fill | None:
    """Return the fill of the greatest value, or None if no fill saves anything.

    Args:
        candidates: Columns, one entry a node.
        targets: Columns, one entry a group.
        allowed: (nodes, groups) whether the pods of a node may run on a new node of a group that is not its equal.
        most_nodes: Most nodes that may be replaced.
    """
    best: Fill | None = None
    same = equivalents(candidates, targets)
    for target in range(len(targets.prices)):
        found = _fill_one(
            candidates, targets, target, allowed[:, target], same[:, target], min(most_nodes, MOST_NODES)
        )
        if found is not None and (best is None or found.value > best.value * (1 + 1e-9)):
            best = found
    return best


def _fill_one(
    candidates: Candidates,
    targets: Targets,
    target: int,
    allowed: NDArray[np.bool_],
    same: FloatVector,
    most_nodes: int,
) -> Fill | None:
    """Fill one node of a group: first by what is saved for the share of it that is taken."""
    stock = targets.stocks[target]
    values = candidates.values
    shares = (candidates.loads / np.maximum(stock, 1e-9)).max(axis=1, initial=0.0)
    worth = np.where(allowed & (values > 0), values / np.maximum(shares, 1e-9), -np.inf)
    left = stock.copy()
    chosen: list[int] = []
    best: Fill | None = None
    for _ in range(most_nodes):
        fits = np.where((candidates.loads <= left).all(axis=1), worth, -np.inf)
        if not len(fits) or fits[one := int(fits.argmax())] == -np.inf:
            break
        chosen.append(one)
        worth[one] = -np.inf
        left = left - candidates.loads[one]
        found = fill_of(candidates, targets, target, chosen, same)
        if found is not None and (best is None or found.value > best.value):
            best = found
    return best


def fill_of(
    candidates: Candidates, targets: Targets, target: int, nodes: Sequence[int], same: FloatVector
) -> Fill | None:
    """Return the fill that replaces just these nodes, or None if it saves nothing.

    ``same`` has, by node, the price of its capacity on nodes of the target (``equivalents``).
    """
    if not nodes:
        return None
    chosen, price = list(nodes), float(targets.prices[target])
    saving = float(candidates.prices[chosen].sum()) - price
    stay = float(candidates.stays[chosen].min())
    cheaper = min(saving, float((candidates.prices[chosen] - same[chosen]).sum()))
    smaller = saving - cheaper
    paid = float(candidates.disruptions[chosen].sum()) + price * float(targets.overlaps[target])
    value = cheaper * stay + smaller * min(stay, float(candidates.calms[chosen].min())) - paid
    return Fill(target, tuple(chosen), value) if saving > 1e-9 * price and value > 0 else None
