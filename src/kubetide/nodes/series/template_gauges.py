"""``kubetide_node_*``: how right the templates of groups were at the last join, and how long new nodes take."""

from __future__ import annotations

from kubetide.nodes.state import State
from kubetide.units.exposition import Registry
from kubetide.units.time import to_seconds


class TemplateGauges:
    """One value per group that nodes have joined."""

    def __init__(self, registry: Registry) -> None:
        self._error = registry.gauge(
            "kubetide_node_template_error_ratio",
            "(real - promised) / promised allocatable of the last node that joined the group.",
            ("node_group", "resource"),
        )
        self._ready = registry.gauge(
            "kubetide_node_time_to_ready_seconds",
            "From the creation of the last node that joined the group until it was ready.",
            ("node_group",),
        )
        self._joined = registry.counter(
            "kubetide_node_joins_total", "Nodes of the group that were seen to join.", ("node_group",)
        )

    def collect(self, state: State) -> None:
        """Set the values of all existing groups."""
        self._error.clear()
        self._ready.clear()
        for group_id, learned in sorted(state.memory.learned.groups.items()):
            join = learned.last_join
            if join is None or group_id not in state.groups:
                continue
            for resource, error in join.errors.items():
                self._error.set(error, group_id, resource)
            self._ready.set(to_seconds(join.took), group_id)
            self._joined.set(learned.joins, group_id)
