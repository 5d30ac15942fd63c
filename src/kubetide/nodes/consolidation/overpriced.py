"""Overpriced nodes: another group has the same capacity for at least a tenth less, and takes all of their pods.

Such a node is to be replaced, or to go when its own pods have ended. To move others' pods there would keep it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubetide.nodes.consolidation.feasible_groups import FeasibleGroups
from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.scheduling import classify_unbound
from kubetide.scheduling.pods.resources import PODS
from kubetide.units.vectors import BoolVector

_SHARE = 0.9
"""At most this share of its price: small differences are no reason to keep pods off a node."""


def overpriced_nodes(
    state: State, templates: Mapping[str, Template | None], feasible: FeasibleGroups
) -> list[str]:
    """Return the names of the overpriced nodes."""
    cheaper = _cheaper(state, templates, feasible)
    found = []
    for group, names in state.nodes_by_group().items():
        if group not in cheaper:
            continue
        for name in names:
            if name not in state.snapshot:
                continue
            classes = dict.fromkeys(map(classify_unbound, state.snapshot.pods_on(name)))
            if feasible.for_all(classes, cheaper[group]).any():
                found.append(name)
    return found


def _cheaper(
    state: State, templates: Mapping[str, Template | None], feasible: FeasibleGroups
) -> dict[str, BoolVector]:
    """Return, by group, those that have as much of each resource that pods ask for, at that share of its price."""
    requested = state.snapshot.requested
    asked = [name for name, column in requested.items() if name != PODS and column.any()]
    known = [
        (group.id, group.price_per_hour, template)
        for group in state.groups.values()
        if group.price_per_hour and (template := templates.get(group.id)) is not None
    ]
    prices = np.array([price for _, price, _ in known])
    # How many nodes of the other group have as much as one of the group.
    nodes = np.zeros((len(known), len(known))) if asked else np.ones((len(known), len(known)))
    for name in asked:
        stock = np.array([template.stock.get(name, 0) for *_, template in known], np.float64)
        nodes = np.maximum(nodes, stock[:, None] / np.maximum(stock[None, :], 1e-9))
    found: dict[str, BoolVector] = {}
    for group, other in np.argwhere(prices[None, :] * nodes <= prices[:, None] * _SHARE).tolist():
        cheaper = found.setdefault(known[group][0], np.zeros(len(feasible.number_of), np.bool_))
        cheaper[feasible.number_of[known[other][0]]] = True
    return found
