"""Nodes that are dear: another group has as much capacity for less, and takes all of their pods.

Such a node is to be replaced, or to go when its own pods have ended. To move others' pods there would keep it.
"""

from __future__ import annotations

from collections.abc import Callable

from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.resources import PODS

Accepts = Callable[[Pod, str, Template], bool]
"""Whether a new node of the group takes the pod."""


def dear_nodes(state: State, templates: dict[str, Template | None], accepts: Accepts) -> list[str]:
    """Return the dear nodes."""
    cheaper = _cheaper(state, templates)
    return [
        name
        for group, names in state.nodes_by_group().items()
        if cheaper.get(group)
        for name in names
        if name in state.snapshot
        and any(
            all(accepts(pod, other, template) for pod in state.snapshot.pods_on(name))
            for other, template in cheaper[group]
        )
    ]


def _cheaper(state: State, templates: dict[str, Template | None]) -> dict[str, list[tuple[str, Template]]]:
    """Return of each group those that have as much of all that pods ask for at a lower price."""
    requested = state.snapshot.requested
    asked = [name for name, column in requested.items() if name != PODS and column.any()]
    known = {
        group.id: (group.price_per_hour, template)
        for group in state.groups.values()
        if group.price_per_hour and (template := templates.get(group.id)) is not None
    }
    found: dict[str, list[tuple[str, Template]]] = {}
    for group, (price, template) in known.items():
        for other, (other_price, other_template) in known.items():
            share = max(
                (
                    template.stock.get(name, 0) / max(other_template.stock.get(name, 0), 1e-9)
                    for name in asked
                ),
                default=1.0,
            )
            if other_price * share < price * (1 - 1e-9):
                found.setdefault(group, []).append((other, other_template))
    return found
