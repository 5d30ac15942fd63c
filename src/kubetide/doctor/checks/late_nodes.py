"""Nodes that were bought and are late: their machines do not register, or they do not become ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import GroupStatus, Snapshot
from kubetide.nodes.explain.unready_nodes import unready_since, what_lacks
from kubetide.nodes.facts.nodes import TO_BE_DELETED, has_taint, is_suspended
from kubetide.nodes.registry.arrivals import slowest_of
from kubetide.nodes.registry.failures import max_provision_time, max_startup_time
from kubetide.nodes.registry.nominations import awaits_nominations
from kubetide.objects.node import Node
from kubetide.units.time import ZERO, Duration, between, format_duration, minutes, parse_rfc3339

_SLOWER: Final = 2
"""A node is late after this many times the time of the slowest of its group's last nodes."""

_LEAST: Final = minutes(3)
"""No node is late earlier than this."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the groups whose machines are late to register, and the nodes that are late to become ready."""
    for group in snapshot.group_statuses:
        yield from _of_group(snapshot, group)
    for node in snapshot.nodes:
        yield from _of_node(snapshot, node)


def _of_group(snapshot: Snapshot, group: GroupStatus) -> Iterator[Finding]:
    """Yield a finding for a group that grows, and that no node has joined for long."""
    missing = max(group.unregistered, group.target_size - group.registered)
    if group.scale_up != "InProgress" or group.since is None or missing <= 0:
        return
    state = snapshot.node_state
    known, settings = state.groups.get(group.name), snapshot.settings
    allowed = settings.max_node_provision_time if known is None else max_provision_time(known, settings)
    # A group that grows for hours is not late while nodes join it. Without a cloud any node may be of the group.
    joined = [
        parse_rfc3339(node.metadata.creation_timestamp)
        for node in snapshot.nodes
        if node.metadata.creation_timestamp and state.group_of(node.metadata.name) in {group.name, None}
    ]
    waits = between(max((group.since, *joined)), snapshot.now)
    # After half of it there is still time to help.
    if waits <= allowed // 2:
        return
    slowest = _slowest(snapshot, group.name)
    usual = (
        f"; the slowest of its last nodes was ready {format_duration(slowest)} after it had joined"
        if slowest
        else ""
    )
    yield Finding(
        check="late-nodes",
        severity="warning",
        object=f"node group {group.name}",
        seen=f"{missing} of {group.target_size} machines without a node, and no node has joined for "
        f"{format_duration(waits)}; the node loop gives up after {format_duration(allowed)}{usual}",
        why="pods that were to go there wait; a machine that does not join is deleted, and the group backs off",
        fix="see at the cloud whether the machines run; on one of them, whether the kubelet starts, reaches the API "
        "server and may join (launch template, bootstrap script, role, security group, CertificateSigningRequests)",
    )


def _of_node(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Yield a finding for a node that has not been ready for long, unless it is about to go or another check has it."""
    state, settings, name = snapshot.node_state, snapshot.settings, node.metadata.name
    since = unready_since(node)
    if not state.health(name).unready or since is None:
        return
    if has_taint(node, TO_BE_DELETED) or is_suspended(node) or awaits_nominations(node, settings):
        return
    group = state.group_of(name)
    slowest = _slowest(snapshot, group or "")
    half = max_startup_time(state.groups.get(group or ""), settings) // 2
    waits = between(since, snapshot.now)
    if waits <= (max(_LEAST, _SLOWER * slowest) if slowest else half):
        return
    usual = f"; the slowest of the last nodes of the group took {format_duration(slowest)}" if slowest else ""
    yield Finding(
        check="late-nodes",
        severity="warning",
        object=f"Node {name}",
        seen=f"{f'of group {group}, ' if group else ''}not ready for {format_duration(waits)}: {what_lacks(node)}{usual}",
        why="it is paid for, and no pods come to it",
        fix=f"kubectl describe node {name}: conditions and taints; then the pods of DaemonSets on it, such as network "
        "and device plug-ins, and the kubelet's log",
    )


def _slowest(snapshot: Snapshot, group: str) -> Duration:
    """Return how long the slowest of a group's last nodes took from joining to ready; 0 if none was seen."""
    learned = snapshot.learned.get(group)
    return ZERO if learned is None else slowest_of(learned.starts)
