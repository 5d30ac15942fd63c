"""Free amounts of new nodes, for loops that ask on the board."""

from __future__ import annotations

from kubetide.nodes.capacity.quotas import quotas_of
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.plan.board import NodeSize


def node_sizes(state: State) -> tuple[NodeSize, ...]:
    """Return the free amounts of a new node of each group that may have nodes, ordered, each size once.

    A group may have none where its maximum is 0, and where a single one would pass a limit of the whole cluster.
    """
    found = set()
    limits = Headroom(state.settings, (), quotas_of(state))
    for group_id, template in all_templates(state).items():
        group = state.groups[group_id]
        if (
            template is not None
            and group.max_size > 0
            and (group.target_size > 0 or limits.cap(template.node, 1))
        ):
            left = template.stock
            found.add(NodeSize(max(left.get("cpu", 0), 0), max(left.get("memory", 0), 0)))
    return tuple(sorted(found))
