"""The node that a pod waits for: one of a group that is on its way, or one that the pod is nominated to."""

from __future__ import annotations

from kubetide.nodes.explain.waiting.node_fit import refusal_on
from kubetide.nodes.facts.amounts import refusal_text
from kubetide.nodes.facts.causes import with_cause
from kubetide.nodes.registry.arrivals import expected_arrival, longest_join_text
from kubetide.nodes.registry.late_nodes import late_text
from kubetide.nodes.registry.view import GroupView
from kubetide.nodes.scale_up.pending.pods import kind_of
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.units.lists import counted, listed
from kubetide.units.time import Instant, format_rfc3339

_MOST_NAMES = 3


def upcoming_text(state: State, view: GroupView, now: Instant) -> str:
    """Return when a group's upcoming nodes are expected and were asked for, and which have joined and are not ready.

    Where the attempt before failed, and no node of the group has come since, that is said, too. Empty if none was asked for.
    """
    request = state.memory.scale_up_requests.get(view.group.id)
    if request is None:
        return ""
    took, at = longest_join_text(state.memory, view.group.id), expected_arrival(state.memory, view.group.id)
    parts = [late_text(state, view.group, one, now) for one in view.counts.late[:_MOST_NAMES]]
    if at is not None and at >= now:
        parts.append(f"expected by {format_rfc3339(at)}, as {took}")
    elif not parts:
        parts.append(took if at is None else f"late, as {took}")
    parts.append(f"asked for at {format_rfc3339(request.time)}")
    parts.append(f"given up at {format_rfc3339(request.expected_add_time)} if it has not joined by then")
    parts += filter(None, [_failed_before(state, view.group.id)])
    parts += [_starting_text(state, name) for name in view.counts.not_started[:_MOST_NAMES]]
    return "; ".join(parts)


def in_vain_text(state: State, group_id: str, pod: Pod) -> str:
    """Return how often nodes of the group have come and left pods like this one waiting, behind a semicolon; empty for never."""
    found = state.memory.useless.get(f"{group_id} {kind_of(pod)}")
    if found is None:
        return ""
    return f"; {counted(found.times, 'time')} before, its nodes have come and left pods like this one waiting"


def _failed_before(state: State, group_id: str) -> str:
    """Return when and why the group failed last; empty if it has not lately, or a node of it has come since."""
    entry, learned = state.memory.backoff.get(group_id), state.memory.learned.groups.get(group_id)
    if entry is None:
        return ""
    joined = None if learned is None else learned.last_join
    if joined is not None and joined.at >= entry.last_failure:
        return ""
    return (
        f"the attempt before failed at {format_rfc3339(entry.last_failure)}: "
        f"{with_cause(entry.cause, entry.error_message)}"
    )


def nominated_sentence(state: State, pod: Pod) -> str:
    """Return what a pod that is nominated to a node waits for; empty for any other pod.

    No node is bought for such a pod: its capacity is reserved on that node.
    """
    name = pod.status.nominated_node_name
    if not name or pod.spec.node_name or pod.metadata.deletion_timestamp:
        return ""
    node = state.nodes.get(name)
    if node is None:
        return (
            f"It is nominated to node {name}, which is not there any more, so no other node is sought for it. The "
            "scheduler drops the nomination when it looks at the pod again."
        )
    group = state.group_of(name)
    start = f"It is nominated to node {name}{f' of group {group}' if group else ''}"
    leaving = [
        "/".join(key_of(one)) for one in state.snapshot.pods_on(name) if one.metadata.deletion_timestamp
    ]
    refusal = refusal_on(state, key_of(pod), name)
    if refusal is None:
        return f"{start}, which takes it: the scheduler binds it there when it looks at the pod again."
    if leaving:
        return (
            f"{start}, and waits until pods that leave it have gone: {listed(sorted(leaving), _MOST_NAMES)}."
        )
    if state.health(name).unready:
        return f"{start}, and waits until it is ready: {_starting_text(state, name)}."
    return f"{start}, which does not take it now: {refusal_text(refusal)}. No other node is sought for it meanwhile."


def _starting_text(state: State, name: str) -> str:
    node = state.nodes[name]
    taints = ", ".join(taint.key for taint in node.spec.taints or ())
    held = f", with {'taints' if ',' in taints else 'taint'} {taints}" if taints else ""
    return f"node {name} joined at {node.metadata.creation_timestamp} and is not ready{held}"
