"""``cluster_autoscaler_*`` series of how long nodes wait for evaluation and removal.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026), which tells these where
``--node-removal-latency-tracking-enabled`` and ``--max-node-skip-eval-time-tracker-enabled`` are on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kubetide.nodes.decision import Action, AddTaint, Outcome
from kubetide.nodes.facts.nodes import TO_BE_DELETED, readiness
from kubetide.nodes.scale_down.unneeded.eligibility import unneeded_time, unready_time
from kubetide.nodes.state import State
from kubetide.units.exposition import Registry, exponential_buckets
from kubetide.units.time import ZERO, Duration, Instant, after, between, to_seconds

PREFIX = "cluster_autoscaler_"
_WAITING = ("NotUnneededLongEnough", "NotUnreadyLongEnough")
"""Reasons that are no delay: the time has not passed yet."""


class _Unneeded(msgspec.Struct, frozen=True):
    eligible: Instant
    """From when on the node might go."""
    delayed_by: str = "none"
    """Upstream's word for what last stood in its way."""


class RemovalSeries:
    """Counts removed nodes, and nodes that became needed again."""

    def __init__(self, registry: Registry) -> None:
        self._latency = registry.histogram(
            f"{PREFIX}node_removal_latency_seconds",
            "Time from when an unneeded node might go until its deletion began, or it was needed again.",
            ("delay_reason", "deleted"),
            buckets=exponential_buckets(1, 1.5, 19),
        )
        self._longest_skip = registry.gauge(
            f"{PREFIX}max_node_skip_eval_duration_seconds",
            "Longest time for which the removal of a node has not been tried, as enough were unneeded already.",
        )
        self._unneeded: dict[str, _Unneeded] = {}
        self._tried: dict[str, Instant] = {}
        """Nodes that were left out the last time, and when their turn last came."""
        self._looked: Instant | None = None

    def update(
        self, state: State, actions: Sequence[Action], outcomes: Sequence[Outcome], now: Instant
    ) -> None:
        """Count the outcomes of a scale-down step."""
        if state.step != "scale_down" or not state.settings.scale_down_enabled:
            return
        self._note_skipped(state, now)
        memory = state.memory.scale_down
        for name in [one for one in self._unneeded if one not in memory.unneeded]:
            if name not in memory.deletions:
                self._over(name, now, deleted=False)
        for name, since in memory.unneeded.items():
            eligible = after(since, _wait(state, name))
            known = self._unneeded.get(name)
            self._unneeded[name] = _Unneeded(eligible) if known is None else replace(known, eligible=eligible)
        for one in memory.status.unremovable:
            if one.node in self._unneeded and one.reason not in _WAITING:
                self._unneeded[one.node] = replace(self._unneeded[one.node], delayed_by=one.reason)
        for action, outcome in zip(actions, outcomes, strict=True):
            if not isinstance(action, AddTaint) or action.key != TO_BE_DELETED or outcome.status != "ok":
                continue
            if memory.deletions[action.node].phase != "untainting":
                self._over(action.node, now, deleted=True)

    def _over(self, name: str, now: Instant, *, deleted: bool) -> None:
        known = self._unneeded.pop(name)
        if now > known.eligible:
            took = to_seconds(between(known.eligible, now))
            self._latency.observe(took, known.delayed_by, "true" if deleted else "false")

    def _note_skipped(self, state: State, now: Instant) -> None:
        skipped = state.tick.not_simulated if state.tick is not None else ()
        before = now if self._looked is None else self._looked
        self._tried = {name: self._tried.get(name, before) for name in skipped}
        self._looked = now
        self._longest_skip.set(to_seconds(between(min(self._tried.values(), default=now), now)))


def _wait(state: State, name: str) -> Duration:
    """Return how long the node must have been unneeded, as it is now."""
    group = state.groups.get(state.group_of(name) or "")
    if group is None:
        return ZERO
    unready = readiness(state.nodes[name], state.settings)
    return (unready_time if unready else unneeded_time)(group, state.settings)
