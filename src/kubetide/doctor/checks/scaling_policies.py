"""Node groups whose size the cloud changes by itself."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.units.lists import listed

_MOST_NAMES = 3


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the groups with scaling policies, alarms or schedules of the cloud."""
    for group in snapshot.groups:
        own = snapshot.scaling_policies.get(group.id, ())
        if own:
            yield Finding(
                check="scaling-policies",
                severity="critical",
                object=f"node group {group.id}",
                seen=f"the cloud changes its size, too: {listed(own, _MOST_NAMES)}",
                why="two that set one size undo each other's work, and the cloud ends machines without draining them",
                fix="delete or disable that at the cloud; the node loop sets the size by what pods ask for",
            )
    if snapshot.scaling_policies_error:
        yield Finding(
            check="scaling-policies",
            severity="info",
            object="node groups",
            seen=f"whether the cloud changes their sizes by itself is not known: {snapshot.scaling_policies_error}",
            why="a scaling policy of the cloud and the node loop undo each other's work",
            fix="allow this program to read them, or see at the cloud that there are none",
        )
