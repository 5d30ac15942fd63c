"""Node groups that cannot grow."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import GroupStatus, Snapshot
from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.nodes.scale_down.pods import is_expendable

_FIX = "raise its maximum at the cloud, or offer another group for the same pods"
_FIX_WAITING = "if its nodes would take these pods, raise its maximum at the cloud; the finding no-group says what each of them lacks"


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the groups at their maximum: a warning while pods wait, else information."""
    settings = snapshot.settings
    waiting = sum(
        is_unschedulable(pod, settings) and not is_expendable(pod, settings.expendable_pods_priority_cutoff)
        for pod in snapshot.pods
    )
    wait = "1 pod waits" if waiting == 1 else f"{waiting} pods wait"
    for group in sizes(snapshot):
        if group.max_size <= 0 or group.target_size < group.max_size:
            continue
        yield Finding(
            check="group-maximum",
            severity="warning" if waiting else "info",
            object=f"node group {group.name}",
            seen=f"it has {group.target_size} {'node' if group.target_size == 1 else 'nodes'}, its maximum of {group.max_size}"
            + (f", while {wait} for a node of some group" if waiting else ""),
            why="it cannot grow with more load",
            fix=_FIX_WAITING if waiting and snapshot.groups else _FIX,
        )


def sizes(snapshot: Snapshot) -> tuple[GroupStatus, ...]:
    """Return name and sizes of all groups: from the cloud, else from the status ConfigMap."""
    if snapshot.groups:
        return tuple(
            GroupStatus(group.id, group.min_size, group.max_size, group.target_size)
            for group in snapshot.groups
        )
    return snapshot.group_statuses
