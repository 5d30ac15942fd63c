"""Free amounts of new nodes, for loops that ask on the board."""

from __future__ import annotations

from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.plan.board import NodeSize


def node_sizes(state: State) -> tuple[NodeSize, ...]:
    """Return the free amounts of a new node of each group that may have nodes, ordered, each size once."""
    found = set()
    for group_id, template in all_templates(state).items():
        if template is not None and state.groups[group_id].max_size > 0:
            left = template.stock
            found.add(NodeSize(max(left.get("cpu", 0), 0), max(left.get("memory", 0), 0)))
    return tuple(sorted(found))
