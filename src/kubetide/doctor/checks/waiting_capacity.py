"""ProvisioningRequests that wait or have failed, and CapacityBuffers without capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubetide.doctor.finding import Finding, Severity, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.explain.buffers import missing_lines
from kubetide.nodes.explain.capacity_overview import (
    WaitingBuffer,
    WaitingRequest,
    waiting_buffers,
    waiting_requests,
)
from kubetide.nodes.explain.requests import pods_lines
from kubetide.objects.kinds import CAPACITY_BUFFERS, PROVISIONING_REQUESTS
from kubetide.units.time import between, minutes, parse_rfc3339

_LONG: Final = minutes(5)
"""A request that has waited longer is a finding."""

_MOST: Final = 10
"""Most findings of each kind, as all groups are asked for each."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the requests and buffers that the page of ``kubetide status`` shows as waiting, with what each group answers."""
    state, now = snapshot.node_state, snapshot.now
    requests = [one for one in waiting_requests(state) if one.failed or _is_old(snapshot, one)]
    yield from (_of_request(snapshot, one) for one in requests[:_MOST])
    # What is on its way needs only time.
    buffers = [one for one in waiting_buffers(state, now) if one.capacity.missing or one.why]
    yield from (_of_buffer(snapshot, one) for one in buffers[:_MOST])


def _is_old(snapshot: Snapshot, waiting: WaitingRequest) -> bool:
    created = waiting.request.metadata.creation_timestamp
    return not created or between(parse_rfc3339(created), snapshot.now) > _LONG


def _of_request(snapshot: Snapshot, waiting: WaitingRequest) -> Finding:
    request = waiting.request
    pods = sum(one.count for one in request.spec.pod_sets or ())
    lines = pods_lines(snapshot.node_state, request, snapshot.now)
    return Finding(
        check="waiting-capacity",
        severity="warning",
        object=title_of(request, PROVISIONING_REQUESTS),
        seen=_joined(waiting.sentence, lines),
        why="the job behind it does not begin before all of its pods have capacity",
        fix="delete it, and create it anew once the cause is gone"
        if waiting.failed
        else f"let a group take its {pods} pods: raise its maximum or the cluster's limits, offer a machine type that "
        "they fit, or ask for less",
    )


def _of_buffer(snapshot: Snapshot, waiting: WaitingBuffer) -> Finding:
    key, found, why = waiting
    pods = found.there + found.coming + found.missing
    lines = missing_lines(snapshot.node_state, found, snapshot.now)
    # Which nodes are on their way is known to the node loop alone.
    grows = any(group.scale_up == "InProgress" for group in snapshot.group_statuses)
    severity: Severity = "info" if grows and not why else "warning"
    return Finding(
        check="waiting-capacity",
        severity=severity,
        object=f"{CAPACITY_BUFFERS.kind} {'/'.join(key)}",
        seen=_joined(
            why or f"{found.missing} of its {pods} pods have no capacity on nodes that are there.", lines
        ),
        why="the next pods of this kind wait until nodes are bought",
        fix="a group grows, so wait until its nodes are ready"
        if severity == "info"
        else "let a group take its pods: raise its maximum or the cluster's limits, or offer a machine type that they fit; "
        "see the conditions in the buffer's status",
    )


def _joined(sentence: str, lines: Sequence[str]) -> str:
    """Return a sentence with the lines behind it as a second one."""
    return " ".join((sentence, "; ".join(line.strip() for line in lines))).rstrip()
