"""Nodes that are dear: another group has as much capacity for a tenth less at least, and takes all of their pods.

Such a node is to be replaced, or to go when its own pods have ended. To move others' pods there would keep it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.scheduling import PodClass, classify_unbound
from kubetide.scheduling.pods.resources import PODS

_DEAR = 0.9
"""At this share of its price and below another group makes a node dear: small differences are no reason to keep pods off."""


def dear_nodes(state: State, templates: Mapping[str, Template | None]) -> list[str]:
    """Return the dear nodes."""
    cheaper = _cheaper(state, templates)
    known: dict[tuple[PodClass, str], bool] = {}

    def takes_all(group: str, template: Template, pods: Iterable[Pod]) -> bool:
        for pod in pods:
            key = classify_unbound(pod), group
            verdict = known.get(key)
            if verdict is None:
                verdict = known[key] = template.fresh.fits(key[0], template.node.metadata.name)
            if not verdict:
                return False
        return True

    return [
        name
        for group, names in state.nodes_by_group().items()
        if group in cheaper
        for name in names
        if name in state.snapshot
        and any(
            takes_all(other, template, state.snapshot.pods_on(name)) for other, template in cheaper[group]
        )
    ]


def _cheaper(state: State, templates: Mapping[str, Template | None]) -> dict[str, list[tuple[str, Template]]]:
    """Return of each dear group those that have as much of all that pods ask for."""
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
            if other_price * share <= price * _DEAR:
                found.setdefault(group, []).append((other, other_template))
    return found
