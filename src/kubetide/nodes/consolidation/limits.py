"""What keeps nodes from going together: minimum sizes, totals of the cluster, disruption budgets of pods."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from kubetide.nodes.scale_down.plan import TotalsAboveMinimum
from kubetide.nodes.state import State
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant


class RemovalLimits:
    """The limits as they are once the nodes taken so far, and those with deletions in flight, have gone.

    Attributes:
        sizes: By group.
        totals: Those of the cluster.
        allowances: Those of the PodDisruptionBudgets.
    """

    def __init__(self, state: State, now: Instant) -> None:
        self._state = state
        self.sizes = {group.id: group.target_size for group in state.groups.values()}
        for deletion in state.memory.scale_down.deletions.values():
            self._shrink(deletion.group)
        self.totals = TotalsAboveMinimum(state, now)
        self.allowances = state.scale_down_cache.allowances(state.pdbs)

    def refusal(self, name: str, pods: Sequence[Pod], *, in_turn: bool = False) -> str:
        """Return which limit the node's removal with the eviction of these pods would break; empty if none.

        With ``in_turn`` a budget need not allow all evictions now but one: the others follow as it allows them, as when
        scale-down drains a node.
        """
        group = self._state.groups[self._state.group_of(name) or ""]
        if self.sizes[group.id] <= group.min_size:
            return f"group {group.id} would fall below its minimum {group.min_size}"
        if exceeded := self.totals.exceeded_by(self._state.nodes[name]):
            return f"the cluster's {exceeded[0]} would fall below its minimum"
        if in_turn and any(self.allowances.refusing(pod) is not None for pod in pods):
            return "a PodDisruptionBudget does not allow an eviction now"
        if not in_turn and not self.allowances.allow_together(pods):
            return "a PodDisruptionBudget does not allow all evictions now"
        return ""

    def take(self, name: str, pods: Sequence[Pod]) -> None:
        """Count the node as gone."""
        self._shrink(self._state.group_of(name) or "")
        self.totals.take(self._state.nodes[name])
        self.allowances.take(pods)

    def copy(self) -> RemovalLimits:
        """Return limits that nodes are taken from without a change to these."""
        made = copy(self)
        made.sizes = dict(self.sizes)
        made.totals, made.allowances = self.totals.copy(), self.allowances.copy()
        return made

    def _shrink(self, group: str) -> None:
        if group in self.sizes:
            self.sizes[group] -= 1


def limits_beside_moves(state: State, now: Instant) -> RemovalLimits:
    """Return the limits as they are once the nodes of all moves under way have gone as well."""
    limits = RemovalLimits(state, now)
    for move in state.memory.consolidation.moves:
        for name in move.nodes:
            if name in state.nodes and name not in state.memory.scale_down.deletions:
                limits.take(name, ())
    return limits
