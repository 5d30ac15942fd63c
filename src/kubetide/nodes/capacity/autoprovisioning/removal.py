"""Deletion of groups that the loop created, once they have been empty for the unneeded time.

Groups that a person made stay, however empty. Source: Cluster Autoscaler until 1.32, node group manager of
autoprovisioning: which groups go, and the events; it deletes them as soon as they are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import Action, Commands, DeleteGroup, EventRecord, Outcome, Result
from kubetide.nodes.facts.nodes import duration_or
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.reporting.events import on_status
from kubetide.nodes.state import State
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Duration, Instant, after, format_rfc3339


def may_remove(state: State) -> bool:
    """Return whether there are created groups that may be empty."""
    if not state.settings.node_autoprovisioning_enabled or not state.settings.scale_down_enabled:
        return False
    return bool(state.memory.empty_since) or bool(_empty(state))


def plan_removal(state: State, now: Instant) -> Commands:
    """Return the deletions of groups that have been empty for long enough."""
    memory = state.memory
    memory.empty_since = {name: memory.empty_since.get(name, now) for name in _empty(state)}
    memory.made_groups = {name: one for name, one in memory.made_groups.items() if name in state.groups}
    if state.holds:
        return Commands()
    due = [name for name, since in memory.empty_since.items() if after(since, _patience(state, name)) <= now]
    return Commands(actions=tuple(map(DeleteGroup, due)))


def absorb_removal(
    state: State, actions: Sequence[Action], results: Sequence[Outcome], now: Instant
) -> Result:
    """Forget deleted groups, try failed deletions again after the same time; return the result."""
    events: list[EventRecord] = []
    reasons: list[Reason] = []
    for action, outcome in zip(actions, results, strict=True):
        assert isinstance(action, DeleteGroup), "nothing else is decided in this step"
        group_id = action.group
        since = format_rfc3339(state.memory.empty_since[group_id])
        if outcome.status == "ok":
            _forget(state, group_id)
            said = f"NodeAutoprovisioning: removed node group {group_id}"
            events += on_status(state, "Normal", "DeletedNodeGroup", said)
            reasons.append(reason("GroupDeleted", group_id, since=since))
        elif outcome.status == "failed":
            state.memory.empty_since[group_id] = now
            said = f"NodeAutoprovisioning: attempt to delete node group {group_id} failed: {outcome.error}"
            events += on_status(state, "Warning", "FailedToDeleteNodeGroup", said)
            reasons.append(reason("GroupNotDeleted", group_id, since=since, error=outcome.error))
        elif outcome.status == "withheld":
            reasons.append(reason("GroupDeletionAdvised", group_id, since=since))
    return Result(events=tuple(events), reasons=tuple(reasons))


def _empty(state: State) -> list[str]:
    """Return the groups made by this program that have no machine, no node and none on its way, in order of id."""
    found = [one.id for one in state.groups.values() if one.autoprovisioned and _has_no_machine(one)]
    if not found:
        return []
    nodes = state.nodes_by_group()
    return [name for name in found if not nodes[name] and name not in state.memory.scale_up_requests]


def _has_no_machine(group: NodeGroup) -> bool:
    return group.exists and group.target_size == 0 and not group.instances and not group.stale


def _patience(state: State, group_id: str) -> Duration:
    options = state.groups[group_id].options
    text = options.scale_down_unneeded_time if options else None
    return duration_or(text, state.settings.scale_down_unneeded_time)


def _forget(state: State, group_id: str) -> None:
    state.set_groups([group for group in state.groups.values() if group.id != group_id])
    state.memory.empty_since.pop(group_id, None)
    state.memory.made_groups.pop(group_id, None)
    if state.view is not None:
        state.view.groups.pop(group_id, None)
