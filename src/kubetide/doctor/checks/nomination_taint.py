"""Ready nodes that keep the nomination taint, as no node loop removes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.facts.nodes import NOMINATION_TAINT
from kubetide.nodes.registry.nominations import awaits_nominations
from kubetide.objects.node import node_condition
from kubetide.units.time import between, format_duration, minutes, parse_rfc3339

_LONG: Final = minutes(5)
"""A loop that acts removes the taint in its next tick."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the nodes that have been ready for five minutes and still have the taint."""
    for node in snapshot.nodes:
        ready = node_condition(node, "Ready")
        waiting = awaits_nominations(node, snapshot.settings)
        if not waiting or ready is None or not ready.last_transition_time:
            continue
        waits = between(parse_rfc3339(ready.last_transition_time), snapshot.now)
        if waits > _LONG:
            yield Finding(
                check="nomination-taint",
                severity="critical",
                object=f"Node {node.metadata.name}",
                seen=f"ready for {format_duration(waits)}, and still has the taint {NOMINATION_TAINT}",
                why="no new pods come to it: only a node loop that acts nominates pods and takes the taint off",
                fix="run kubetide with --controllers=nodes and --act, or let the group's nodes begin without the taint; "
                f"until then: kubectl taint nodes {node.metadata.name} {NOMINATION_TAINT}-",
            )
