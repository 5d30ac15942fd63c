"""Node groups whose cloud did not deliver."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import REPAIR_NODES, Finding
from kubetide.doctor.snapshot import Snapshot


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the groups in backoff or unhealthy, by the status ConfigMap, and machines that the cloud could not make."""
    reported = {group.name for group in snapshot.group_statuses if group.scale_up in {"Backoff", "Unhealthy"}}
    for group in snapshot.group_statuses:
        if group.scale_up == "Backoff":
            error = ": ".join(text for text in (group.error_code, group.error_message) if text)
            yield _finding(group.name, f"it is in backoff{f' after {error}' if error else ''}")
        elif group.scale_up == "Unhealthy":
            yield Finding(
                check="group-backoff",
                severity="critical",
                object=f"node group {group.name}",
                seen="too many of its nodes are missing or not ready",
                why="the group gets no new nodes until they are; pods that only it takes wait",
                fix=REPAIR_NODES,
            )
    for one in snapshot.groups:
        errors = [instance.error for instance in one.instances or () if instance.error is not None]
        if errors and one.id not in reported:
            first = errors[0]
            text = f"{first.error_code}: {first.error_message}" if first.error_message else first.error_code
            yield _finding(one.id, f"{len(errors)} of its machines could not be made: {text}")


def _finding(group: str, seen: str) -> Finding:
    return Finding(
        check="group-backoff",
        severity="critical",
        object=f"node group {group}",
        seen=seen,
        why="the group is passed over until the backoff ends; pods that only it takes wait",
        fix="check quota and stock at the cloud, and offer a group of another machine type or zone for the same pods",
    )
