"""Taints that announce scale-down: soft taints on unneeded nodes, and those of earlier processes.

Source: Cluster Autoscaler, soft deletion taints; a soft taint keeps the scheduler from filling a node
that is about to go, as long as other nodes have free capacity.
"""

from __future__ import annotations

from collections.abc import Collection

from kubetide.nodes.decision import AddTaint, EventRecord, Outcome, RemoveTaint
from kubetide.nodes.facts.nodes import (
    CONSOLIDATION,
    DELETION_CANDIDATE,
    FILL_LATER,
    TO_BE_DELETED,
    has_taint,
)
from kubetide.nodes.scale_down.deletion.events import cleaned
from kubetide.nodes.scale_down.names import PREFER_NO_SCHEDULE
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.units.time import Instant, after, seconds


def unix_seconds(now: Instant) -> str:
    """Return the value of upstream's taints."""
    return str(now // seconds(1))


def soft_taints(state: State, unneeded: Collection[str], now: Instant) -> tuple[AddTaint | RemoveTaint, ...]:
    """Return the soft taint changes of this tick: needed nodes first, at most --max-bulk-soft-taint-count."""
    budget = state.settings.max_bulk_soft_taint_count
    remove: list[AddTaint | RemoveTaint] = []
    add: list[AddTaint | RemoveTaint] = []
    if budget <= 0:
        return ()
    older = {name for name, one in state.memory.scale_down.deletions.items() if one.since != now}
    known = state.known_nodes()
    if known.marked is None:
        marked = (name for name, node in state.nodes.items() if has_taint(node, DELETION_CANDIDATE))
        known.marked = frozenset(marked)
    for name in known.marked.symmetric_difference(unneeded):
        node = state.nodes.get(name)
        if node is None:
            continue
        # Nodes that have registered but not started are out of this tick's snapshot and left alone.
        # One whose deletion begins in this tick still counts as unneeded, and gets the taint with the others.
        # As upstream, nor are nodes in no group touched: they may be another autoscaler's.
        if name in older or has_taint(node, TO_BE_DELETED) or name not in state.snapshot:
            continue
        if state.group_of(name) is None:
            continue
        if name in unneeded:
            add.append(AddTaint(name, DELETION_CANDIDATE, unix_seconds(now), PREFER_NO_SCHEDULE))
        else:
            remove.append(RemoveTaint(name, DELETION_CANDIDATE))
    remove.sort(key=lambda action: action.node)
    add.sort(key=lambda action: action.node)
    return (*remove, *add)[:budget]


def startup_cleanup(state: State, now: Instant) -> tuple[RemoveTaint, ...]:
    """Return the taints to remove at the first tick of a process.

    Deletion taints (with the cordon) of all nodes in groups, for no deletion is in flight, but not of those whose machine
    the cloud is deleting already: pods that come to these are lost (upstream takes them off there, too); with soft
    taints switched off also candidates' taints that are older than --node-deletion-candidate-ttl; without
    --steer-pods-to-fuller-nodes its taints. Those of consolidation go, too: its moves begin anew.
    """
    settings = state.settings
    actions: list[RemoveTaint] = []
    for name in sorted(state.nodes):
        node = state.nodes[name]
        in_flight = name in state.memory.scale_down.deletions
        stays = not in_flight and not state.is_leaving(name) and state.group_of(name) is not None
        if has_taint(node, TO_BE_DELETED) and stays:
            actions.append(RemoveTaint(name, TO_BE_DELETED, uncordon=settings.cordon_node_before_terminating))
        if has_taint(node, CONSOLIDATION) and name not in state.memory.consolidation.closing:
            actions.append(RemoveTaint(name, CONSOLIDATION))
        if settings.max_bulk_soft_taint_count == 0:
            since, ttl = candidate_since(node), settings.node_deletion_candidate_ttl
            stale = ttl <= 0 or since is None or after(since, ttl) <= now
            if has_taint(node, DELETION_CANDIDATE) and stale:
                actions.append(RemoveTaint(name, DELETION_CANDIDATE))
        if not settings.steer_pods_to_fuller_nodes or settings.max_bulk_soft_taint_count == 0:
            actions += [RemoveTaint(name, key) for key in FILL_LATER if has_taint(node, key)]
    return tuple(actions)


def cleanup_event(action: RemoveTaint, outcome: Outcome) -> EventRecord:
    """Return the event for one clean-up."""
    error = "" if outcome.status == "ok" else outcome.error or "not tried"
    return cleaned(action.node, action.key, error)


def candidate_since(node: Node) -> Instant | None:
    """Return since when the node has its soft taint; None without one whose value can be read."""
    for taint in node.spec.taints or ():
        if taint.key == DELETION_CANDIDATE and taint.value.isascii() and taint.value.isdigit():
            return Instant(seconds(int(taint.value)))
    return None


def restore(state: State, now: Instant) -> None:
    """Take over, once, the times in soft taints of an earlier process (--node-deletion-candidate-ttl)."""
    memory = state.memory.scale_down
    if memory.restored:
        return
    memory.restored = True
    ttl = state.settings.node_deletion_candidate_ttl
    if ttl <= 0:
        return
    for name in sorted(state.nodes):
        since = candidate_since(state.nodes[name])
        if since is not None and after(since, ttl) >= now and name not in memory.unneeded:
            # A process whose clock was ahead may have written it.
            memory.unneeded[name] = min(since, now)
