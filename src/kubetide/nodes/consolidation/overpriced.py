"""Overpriced nodes: another group has the same capacity for at least a tenth less, and takes all of their pods.

Such a node is to be replaced, or to go when its own pods have ended. To move others' pods there would keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.scheduling import PodClass, classify_unbound
from kubetide.scheduling.pods.resources import PODS

_SHARE = 0.9
"""At most this share of its price: small differences are no reason to keep pods off a node."""

Accepts = Callable[[PodClass, str, Template], bool]
"""Whether an empty node of a group takes a pod of the class."""


def overpriced_nodes(state: State, templates: Mapping[str, Template | None], accepts: Accepts) -> list[str]:
    """Return the names of the overpriced nodes."""
    cheaper = _cheaper(state, templates)
    found = []
    for group, names in state.nodes_by_group().items():
        if group not in cheaper:
            continue
        for name in names:
            if name not in state.snapshot:
                continue
            classes = {classify_unbound(pod) for pod in state.snapshot.pods_on(name)}
            if any(
                all(accepts(one, other, template) for one in classes) for other, template in cheaper[group]
            ):
                found.append(name)
    return found


def _cheaper(state: State, templates: Mapping[str, Template | None]) -> dict[str, list[tuple[str, Template]]]:
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
    found: dict[str, list[tuple[str, Template]]] = {}
    for group, other in np.argwhere(prices[None, :] * nodes <= prices[:, None] * _SHARE).tolist():
        name, _, template = known[other]
        found.setdefault(known[group][0], []).append((name, template))
    return found
