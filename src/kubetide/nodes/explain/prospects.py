"""When a node will be removed, and what it costs until then."""

from __future__ import annotations

from kubetide.nodes.explain.reserved_capacity import is_booking
from kubetide.nodes.facts.nodes import has_taint, readiness
from kubetide.nodes.scale_down.fill_order import SHARES
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.unneeded.eligibility import (
    cluster_delays,
    local_delay_ends,
    unneeded_time,
    unready_time,
)
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.units.time import Duration, Instant, after, format_duration, format_rfc3339

TIME_ALONE = frozenset({"NotUnneededLongEnough", "NotUnreadyLongEnough"})
"""Reasons of a node that stays which the passing of time ends."""


def price_of(state: State, group_id: str) -> float | None:
    """Return the hourly price of one node of the group; None if it is unknown."""
    group = state.groups.get(group_id)
    return None if group is None else group.price_per_hour


def last_simulated_verdict(state: State, verdict: UnremovableNode) -> UnremovableNode:
    """Return the last simulation's verdict if the present one only says that it is too early for another."""
    known = state.memory.scale_down.unremovable.get(verdict.node)
    return verdict if verdict.blocking_pod or known is None else known.verdict


def unneeded_wait(state: State, node_name: str) -> Duration | None:
    """Return how long the node must be unneeded before its removal; None for a node of no group."""
    group_id = state.group_of(node_name)
    if group_id is None:
        return None
    asked = unready_time if readiness(state.nodes[node_name], state.settings) else unneeded_time
    return asked(state.groups[group_id], state.settings)


def removal_time(state: State, node_name: str) -> Instant | None:
    """Return when the node will have been unneeded for long enough, and the delays after scale-ups and removals are over.

    None for a needed node or one of no group.
    """
    since = state.memory.scale_down.unneeded.get(node_name)
    time, group_id = unneeded_wait(state, node_name), state.group_of(node_name)
    if since is None or time is None or group_id is None:
        return None
    own = local_delay_ends(state, group_id, since)
    return max(after(since, time), own or since, *(delay.ends for delay in cluster_delays(state)))


def removal_sentence(state: State, node_name: str, reason: str, blocking_pod: str) -> str:
    """Return a sentence that says when the node may be removed; empty if that is unknown.

    Args:
        state: After the last evaluation.
        node_name: The node.
        reason: Why it stays, in upstream's word; empty for a node that is unneeded or was not looked at.
        blocking_pod: The pod that keeps it; empty for none.
    """
    time = unneeded_wait(state, node_name)
    if time is None:
        return ""
    at = removal_time(state, node_name)
    known = state.memory.scale_down.unremovable.get(node_name)
    if reason != "RecentlyUnremovable" or known is None:
        again = ""
    else:
        again = f" (looked at again from {format_rfc3339(known.until)} on)"
        reason = known.verdict.reason
    if blocking_pod:
        over = "that booking is over" if is_booking(state, blocking_pod) else "that pod no longer keeps it"
        # As upstream: no places are sought for the pods of a node that one of them keeps.
        freed = f"when {over} and its pods fit on other nodes{again}"
        return f"{freed}, and it has then been unneeded for {format_duration(time)}"
    if reason == "NoPlaceToMovePods":
        return f"when its pods fit on other nodes{again}, and it has then been unneeded for {format_duration(time)}"
    if reason == "NotUnderutilized":
        return f"when its utilization has been below the threshold for {format_duration(time)}"
    if at is not None and (not reason or reason in TIME_ALONE):
        return f"from {format_rfc3339(at)} on, if it stays unneeded and nothing else holds scale-down"
    return ""


def failures_sentence(state: State, node_name: str) -> str:
    """Return how often the node's removal has failed in this process, when last and why; empty for never."""
    failed = state.memory.scale_down.failures.get(node_name)
    if failed is None:
        return ""
    times = "once" if failed.count == 1 else f"{failed.count} times"
    return f"its removal has failed {times}, last at {format_rfc3339(failed.last)}: {failed.error}"


def filling_sentence(node: Node) -> str:
    """Return how strongly the scheduler prefers fuller nodes to this one; empty where it does not."""
    below = [share for key, share in SHARES.items() if has_taint(node, key)]
    if not below:
        return ""
    return (
        f"after fuller nodes, as its pods ask for less than {min(below):.0%} of it "
        f"({len(below)} of {len(SHARES)} soft taints; --steer-pods-to-fuller-nodes)"
    )


def unlooked_sentence(state: State, name: str, group: str) -> tuple[str, str]:
    """Return why a node without a verdict stays, as a sentence and as a word; ``group`` is empty for a node of none."""
    if lister := state.lister_of(name):
        return (
            f"Group {lister} counts its machine, but its provider puts the node in no group, so it is never removed.",
            "NotAutoscaled",
        )
    if not group:
        return "It belongs to no node group, so it is never removed.", "NotAutoscaled"
    known = state.groups[group]
    if known.stale:
        return (
            f"Group {group} is seen as it was earlier: {known.stale}; until it is read anew nothing of it is removed.",
            "NodeGroupStale",
        )
    if known.target_size <= known.min_size:
        return f"Group {group} is at its minimum of {known.min_size}.", "NodeGroupMinSizeReached"
    return "It has not been looked at yet.", ""
