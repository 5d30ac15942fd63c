"""Nodes that wait for pods to be nominated to them, while nobody nominates any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.facts.nodes import NOMINATES
from kubetide.nodes.registry.nominations import may_be_nominated_to
from kubetide.objects.node import node_condition
from kubetide.units.time import between, format_duration, minutes, parse_rfc3339

_LONG: Final = minutes(5)
"""An acting loop opens a node in its next tick."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the nodes that have been ready for five minutes and still have the taint."""
    for node in snapshot.nodes:
        ready = node_condition(node, "Ready")
        if ready is None or not ready.last_transition_time or not may_be_nominated_to(node):
            continue
        waits = between(parse_rfc3339(ready.last_transition_time), snapshot.now)
        if waits > _LONG:
            yield Finding(
                check="closed-nodes",
                severity="critical",
                object=f"Node {node.metadata.name}",
                seen=f"ready for {format_duration(waits)}, and still has the taint {NOMINATES}",
                why="no new pods come to it: only a node loop that acts nominates pods and takes the taint off",
                fix="run kubetide with --controllers=nodes and --act, or let the group's nodes begin without the taint; "
                f"until then: kubectl taint nodes {node.metadata.name} {NOMINATES}-",
            )
