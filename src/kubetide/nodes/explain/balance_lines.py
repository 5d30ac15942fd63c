"""Which groups a group is balanced with, and why not with others, as lines for people."""

from __future__ import annotations

from kubetide.nodes.scale_up.increase.balancing import difference
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates

_MOST = 5


def balance_lines(state: State, group_id: str) -> tuple[str, ...]:
    """Return a line for the similar groups, and one for each of the first dissimilar ones; none if balancing is off."""
    settings = state.settings
    if not (settings.balance_similar_node_groups or settings.balance_scale_down):
        return ()
    templates = all_templates(state)
    own = templates[group_id]
    if own is None:
        return ()
    similar: list[str] = []
    lines: list[str] = []
    more = 0
    for name, template in templates.items():
        if name == group_id or template is None:
            continue
        why = difference(own, template, settings)
        if why is None:
            similar.append(name)
        elif len(lines) < _MOST:
            lines.append(f"not similar to {name}: {why}")
        else:
            more += 1
    first = [f"balanced with {', '.join(similar)}" if similar else "similar to no other group"]
    return (*first, *lines, *([f"nor to {more} more"] if more else []))
