"""ProvisioningRequests that wait or have failed, and CapacityBuffers without capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubetide.doctor.finding import Finding, Severity, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.capacity.provisioning.conditions import is_check_capacity, is_served
from kubetide.nodes.explain.buffers import NO_INJECTION, BufferCapacity, missing_lines
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
    requests = [
        one for one in waiting_requests(state, retries_known=False) if one.failed or _is_old(snapshot, one)
    ]
    yield from (_of_request(snapshot, one) for one in requests[:_MOST])
    # What is on its way needs only time.
    buffers = [one for one in waiting_buffers(state, now) if one.capacity.missing or one.why]
    yield from (_of_buffer(snapshot, one) for one in buffers[:_MOST])


def _is_old(snapshot: Snapshot, waiting: WaitingRequest) -> bool:
    created = waiting.request.metadata.creation_timestamp
    return not created or between(parse_rfc3339(created), snapshot.now) > _LONG


def _of_request(snapshot: Snapshot, waiting: WaitingRequest) -> Finding:
    request = waiting.request
    lines = pods_lines(snapshot.node_state, request, snapshot.now)
    return Finding(
        check="waiting-capacity",
        severity="warning",
        object=title_of(request, PROVISIONING_REQUESTS),
        seen=_joined(waiting.sentence, lines),
        why="the job behind it does not begin before all of its pods have capacity",
        fix=_fix_of_request(snapshot, waiting),
    )


def _fix_of_request(snapshot: Snapshot, waiting: WaitingRequest) -> str:
    request, settings = waiting.request, snapshot.node_state.settings
    if waiting.failed:
        return "delete it, and create it anew once the cause is gone"
    if not settings.enable_provisioning_requests or not is_served(request, settings):
        return "let a node loop serve it: --enable-provisioning-requests, and a class that the loop knows; or delete it"
    count = sum(one.count for one in request.spec.pod_sets or ())
    pods = "its pod" if count == 1 else f"its {count} pods"
    if is_check_capacity(request, settings.check_capacity_processor_instance):
        return (
            f"free capacity on the nodes for {pods}, or ask for less; no node is bought for this class, but is for "
            "best-effort-atomic-scale-up"
        )
    return (
        f"let a group take {pods}: raise its maximum or the cluster's limits, offer a machine type that "
        f"{'it fits' if count == 1 else 'they fit'}, or ask for less"
    )


def _of_buffer(snapshot: Snapshot, waiting: WaitingBuffer) -> Finding:
    key, found, why = waiting
    if why == found.limited and found.missing:  # what quotas leave is missing, too, and that comes first
        why = ""
    pods = found.there + found.coming + found.missing
    lines = missing_lines(snapshot.node_state, found, snapshot.now)
    # Without a cloud nobody knows how many nodes are on their way.
    grows = not snapshot.groups and any(one.scale_up == "InProgress" for one in snapshot.group_statuses)
    waits = grows and not why
    severity: Severity = "info" if waits or (why and why == found.limited) else "warning"
    where = "that are there or on their way" if snapshot.groups else "that are there"
    return Finding(
        check="waiting-capacity",
        severity=severity,
        object=f"{CAPACITY_BUFFERS.kind} {'/'.join(key)}",
        seen=_joined(why or f"{found.missing} of its {pods} pods have no capacity on nodes {where}.", lines),
        why="the next pods of this kind wait until nodes are bought",
        fix="a group grows, so wait until its nodes are ready" if waits else _fix_of_buffer(found, why),
    )


def _fix_of_buffer(found: BufferCapacity, why: str) -> str:
    """Return what a person can do about a buffer; ``why`` is empty where only capacity is missing."""
    if why and why == found.limited:
        return "raise what the ResourceQuotas allow, or let the buffer ask for fewer pods: no node helps it"
    if why == NO_INJECTION:
        return "set --capacity-buffer-pod-injection-enabled for the node loop"
    if why:
        return "put right what its condition ReadyForProvisioning names: no node helps it"
    return (
        "let a group take its pods: raise its maximum or the cluster's limits, or offer a machine type that they fit; "
        "see the conditions in the buffer's status"
    )


def _joined(sentence: str, lines: Sequence[str]) -> str:
    """Return a sentence with the lines behind it as a second one."""
    return " ".join((sentence, "; ".join(line.strip() for line in lines))).rstrip()
