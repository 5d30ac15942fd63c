"""A cluster in which too many nodes are not ready."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import REPAIR_NODES, Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.explain.cluster_health import unhealthy_now


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the whole cluster if too many of its nodes are not ready: no group gets nodes, and none loses any."""
    if halt := unhealthy_now(snapshot.node_state, snapshot.now):
        yield Finding(
            check="cluster-health",
            severity="critical",
            object="cluster",
            seen=halt.rstrip("."),
            why="what else is found here cannot be put right by the node loop before that",
            fix=REPAIR_NODES,
        )
