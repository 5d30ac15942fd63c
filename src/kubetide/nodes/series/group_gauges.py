"""``cluster_autoscaler_node_group_*``: one value a group, where ``--emit-per-nodegroup-metrics`` asks for them.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026). A group that is gone loses its values here; upstream
keeps them.
"""

from __future__ import annotations

from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.state import State
from kubetide.units.exposition import Registry
from kubetide.units.time import Instant

PREFIX = "cluster_autoscaler_node_group_"
_UNKNOWN = "unknown"
"""The reason of a failure that the cloud gave no code for."""


class GroupGauges:
    """The gauges of one registry."""

    def __init__(self, registry: Registry) -> None:
        label = ("node_group",)
        self._least = registry.gauge(f"{PREFIX}min_count", "Fewest nodes of the group.", label)
        self._most = registry.gauge(f"{PREFIX}max_count", "Most nodes of the group.", label)
        self._target = registry.gauge(f"{PREFIX}target_count", "Nodes that the group is to have.", label)
        self._healthy = registry.gauge(
            f"{PREFIX}healthiness", "Whether enough of the group is ready: 1 or 0.", label
        )
        self._backoff = registry.gauge(
            f"{PREFIX}backoff_status",
            "Whether the group is left out for a while after failures, by their reason: 1 or 0.",
            ("node_group", "reason"),
        )
        self._reasons: dict[str, dict[str, None]] = {}

    def collect(self, state: State, now: Instant) -> None:
        """Set all gauges; before the first tick there are none."""
        if state.view is None:
            return
        for gauge in (self._least, self._most, self._target, self._healthy, self._backoff):
            gauge.clear()
        self._reasons = {name: seen for name, seen in self._reasons.items() if name in state.groups}
        for name, group in state.groups.items():
            self._target.set(group.target_size, name)
            if not group.exists:
                continue
            self._least.set(group.min_size, name)
            self._most.set(group.max_size, name)
            view = state.view.groups.get(name)
            self._healthy.set(view is None or view.healthy, name)
            self._collect_backoff(state, name, now)

    def _collect_backoff(self, state: State, name: str, now: Instant) -> None:
        """A reason that was shown once stays, at 0; a group without any has the empty one."""
        entry = state.memory.backoff.get(name)
        seen = self._reasons.setdefault(name, {})
        current = entry.error_code or _UNKNOWN if entry is not None and is_backed_off(entry, now) else None
        if current is not None:
            seen[current] = None
        for reason in seen or {"": None}:
            self._backoff.set(reason == current, name, reason)
