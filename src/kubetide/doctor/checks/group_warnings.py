"""The cloud's warnings about a node group's settings."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.templates.build import template_of


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the warnings of the provider: unreadable tags, settings that do not go with an autoscaler.

    A group of which the cloud gives no template is one only while no live node of it can serve.
    """
    state = snapshot.node_state
    nodes = state.nodes_by_group()
    for group in snapshot.groups:
        for text in group.warnings or ():
            yield _finding(group.id, text, "correct the group's settings at the cloud")
        if group.template_error and template_of(state, group, nodes[group.id]) is None:
            yield _finding(
                group.id,
                f"nobody can say what its nodes look like: {group.template_error}",
                "tag the group with its labels, taints and resources, or keep one node of it",
            )


def _finding(group: str, seen: str, fix: str) -> Finding:
    return Finding(
        check="group-warnings",
        severity="warning",
        object=f"node group {group}",
        seen=seen,
        why="the node loop decides on what the group says of itself",
        fix=fix,
    )
