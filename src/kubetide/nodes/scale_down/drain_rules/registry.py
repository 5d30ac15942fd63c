"""The drain rules in evaluation order: a new rule is one line here."""

from __future__ import annotations

from typing import Final

from kubetide.nodes.scale_down.drain_rules import builtin
from kubetide.nodes.scale_down.drain_rules.base import Rule

RULES: Final = (
    Rule("Mirror", builtin.mirror),
    Rule("LongTerminating", builtin.long_terminating, changes_at=builtin.long_terminating_changes),
    Rule("ReplicaCount", builtin.replica_count, uses_owners=True),
    Rule("DaemonSet", builtin.daemon_set),
    Rule("SafeToEvict", builtin.safe_to_evict),
    Rule("Terminal", builtin.terminal),
    Rule("OnCompletion", builtin.on_completion),
    Rule("Replicated", builtin.not_replicated),
    Rule("System", builtin.kube_system, changes_at=builtin.kube_system_changes),
    Rule("NotSafeToEvict", builtin.not_safe_to_evict),
    Rule("LocalStorage", builtin.local_storage),
    Rule("PodDisruptionBudget", builtin.disruption_budget, uses_allowance=True),
)
