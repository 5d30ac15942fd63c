"""Shared parts of a deletion's steps: due times, pods seen on the node, failures."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.deletion import events
from kubetide.nodes.scale_down.memory import DeleteResult, Deletion, RemovalFailures
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant, before, hours

EVICTION_FAILED = "NodeDeleteErrorFailedToEvictPods"
INTERNAL = "NodeDeleteErrorInternal"
NOT_MARKED = "NodeDeleteErrorFailedToMarkToBeDeleted"
NOT_AS_A_WHOLE = "couldn't scale down other nodes in this node group"

_BEFORE_READY = ("marking", "waiting", "evicting", "terminating", "delaying")


def next_wake(deletions: Mapping[str, Deletion]) -> Instant | None:
    """Return when the next step of any deletion is due; None when none is in flight."""
    return min((deletion.due for deletion in deletions.values()), default=None)


def goes_whole(state: State, group_id: str) -> bool:
    """Return whether the group has either zero nodes or its maximum, so that all of its nodes are removed together."""
    group = state.groups.get(group_id)
    return bool(group and group.options and group.options.zero_or_max_node_scaling)


def has_no_group(state: State, deletion: Deletion) -> bool:
    """Return whether the node's group is gone while no call is under way: the node can be given back at once."""
    can_stop = deletion.phase in {"waiting", "evicting", "terminating", "delaying", "ready"}
    return can_stop and deletion.group not in state.groups


def machine_is_listed(state: State, deletion: Deletion) -> bool:
    """Return whether the group still has the node's machine, and the cloud is not deleting it already.

    Then the deletion goes on without the Node object, as upstream's does: else the machine would run on for nothing.
    """
    group = state.groups.get(deletion.group)
    machines = () if group is None else group.instances or ()
    return any(one.provider_id == deletion.provider_id and one.state != "Deleting" for one in machines)


def waits_for_others(state: State, group_id: str) -> bool:
    """Return whether the group is removed as a whole, and others of its nodes are not ready for it yet."""
    deletions = state.memory.scale_down.deletions.values()
    return goes_whole(state, group_id) and any(
        one.group == group_id and one.phase in _BEFORE_READY for one in deletions
    )


def end_after(deletion: Deletion, retry: Instant) -> Instant | None:
    """Return the end of a deletion whose reading is retried: a due batch waits for it, other phases keep their end."""
    return retry if deletion.phase == "ready" else deletion.until


def with_pods_seen(deletion: Deletion, pods: tuple[Pod, ...], now: Instant) -> Deletion:
    """Return the deletion with the pods that the API server reports on its node."""
    found = tuple(key_of(pod) for pod in pods)
    return replace(deletion, checked=now, found=found, reading=False, tries=0)


def evictions_left(state: State, now: Instant) -> int:
    """Return how many more pods may be evicted within the hour."""
    hour_ago = before(now, hours(1))
    used = sum(count for at, count in state.memory.scale_down.recent_evictions if at > hour_ago)
    return state.settings.max_evictions_per_hour - used


def refusals(deletion: Deletion) -> tuple[list[EventRecord], str]:
    """Return the events of pods whose turn is over and that have not gone, and all errors as Go prints a list."""
    emitted: list[EventRecord] = []
    errors: list[str] = []
    for one in deletion.pods:
        if one.needed and not one.evicted and one.stage == deletion.stage:
            last = one.error or "not tried, the cap of evictions an hour is reached"
            errors.append(
                f"failed to evict pod {one.namespace}/{one.name} within allowed timeout (last error: {last})"
            )
            said = "failed to delete pod for ScaleDown"
            emitted.append(events.on_pod(one.namespace, one.name, one.uid, said, failed=True))
    return emitted, f"[{' '.join(errors)}]"


def note_failure(state: State, node: str, result: str, error: str, now: Instant) -> None:
    """Note that the removal of a node failed: for the next report, and counted for explanations."""
    memory = state.memory.scale_down
    memory.results[node] = DeleteResult(result, error)
    before = memory.failures.get(node)
    count, unmarked = (0, 0) if before is None else (before.count, before.unmarked)
    unmarked = unmarked + 1 if result == NOT_MARKED else 0
    memory.failures[node] = RemovalFailures(count + 1, now, error, unmarked)


def failure(
    state: State, deletion: Deletion, result: str, error: str, now: Instant
) -> tuple[EventRecord, Reason, Deletion]:
    """Note a failed deletion; return the event, the reason, and the deletion in its rollback phase."""
    note_failure(state, deletion.node, result, error, now)
    given_back = replace(deletion, phase="untainting", due=now, tries=0, reading=False)
    because = reason("DeletionFailed", deletion.node, group=deletion.group, why=result, error=error)
    return events.failed(deletion, error), because, given_back
