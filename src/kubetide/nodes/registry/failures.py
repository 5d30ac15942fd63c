"""Failures that the registry detects: requests that time out, machines that cannot be created.

Source: Cluster Autoscaler's cluster state registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.facts.causes import cause_of, with_cause
from kubetide.nodes.facts.nodes import duration_or
from kubetide.nodes.memory import ScaleUpRequest
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import start_backoff
from kubetide.nodes.registry.stock_outs import note_shortage
from kubetide.nodes.registry.view import MachineFailure
from kubetide.nodes.scale_up.reporting.events import instances_failed, scale_up_timed_out
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.ports.cloud import Instance, NodeGroup
from kubetide.units.time import Duration, Instant, after, between, format_duration

_MANY_MESSAGES = 3
"""With more messages than this of one kind of failure their list ends in dots, though it is whole."""


class Findings(msgspec.Struct):
    """Events, reasons, and the machines counted as failed."""

    events: list[EventRecord] = msgspec.field(default_factory=list)
    reasons: list[Reason] = msgspec.field(default_factory=list)
    failures: list[MachineFailure] = msgspec.field(default_factory=list)


def max_provision_time(group: NodeGroup, settings: Settings) -> Duration:
    """Return how long a new node of the group may take to register."""
    text = group.options.max_node_provision_time if group.options else None
    return duration_or(text, settings.max_node_provision_time)


def max_startup_time(group: NodeGroup | None, settings: Settings) -> Duration:
    """Return how long a node of the group may take from creation to ready; also for a node in no group."""
    text = group.options.max_node_startup_time if group is not None and group.options else None
    return duration_or(text, settings.max_node_startup_time)


def doomed_with(group: NodeGroup, failed: Sequence[Instance]) -> tuple[Instance, ...]:
    """Return the machines to delete because some could not be created.

    Of a group that exists at zero or at its maximum all go, or none where its growing to the maximum may fail in part.
    Source: Cluster Autoscaler, clean-up of machines with creation errors, and allowNonAtomicScaleUpToMax.
    """
    if not is_zero_or_max(group):
        return tuple(failed)
    there = tuple(one for one in group.instances or () if one.managed)
    return there if is_atomic(group) or len(failed) == len(there) else ()


def is_atomic(group: NodeGroup) -> bool:
    """Return whether the group's increases are useful only as a whole."""
    return is_zero_or_max(group) and not (group.options and group.options.allow_non_atomic_scale_up_to_max)


def is_zero_or_max(group: NodeGroup) -> bool:
    """Return whether the group has either zero nodes or its maximum."""
    return bool(group.options and group.options.zero_or_max_node_scaling)


def note_request(state: State, group: NodeGroup, delta: int, now: Instant) -> None:
    """Register nodes that were asked for (``delta`` > 0) or that will not come (< 0)."""
    requests = state.memory.scale_up_requests
    request = requests.get(group.id)
    expected = after(now, max_provision_time(group, state.settings))
    if request is None:
        if delta > 0:
            requests[group.id] = ScaleUpRequest(delta, now, expected)
    elif request.increase + delta <= 0:
        del requests[group.id]
    elif delta > 0:
        requests[group.id] = ScaleUpRequest(request.increase + delta, now, expected)
    else:
        requests[group.id] = replace(request, increase=request.increase + delta)


def time_out(state: State, group_id: str, request: ScaleUpRequest, findings: Findings, now: Instant) -> None:
    """End a request whose nodes did not come in time: start a backoff, return an event."""
    waited = between(request.time, now)
    del state.memory.scale_up_requests[group_id]
    findings.events += scale_up_timed_out(state, group_id, waited)
    message = f"Scale-up timed out for node group {group_id} after {format_duration(waited)}"
    back_off(state, group_id, "timeout", message, findings, now)


def back_off(
    state: State, group_id: str, error_code: str, message: str, findings: Findings, now: Instant
) -> None:
    """Start the backoff of a group whose nodes have not come, of which the cloud says nothing."""
    memory = state.memory
    entry = start_backoff(
        memory.backoff.get(group_id),
        now,
        state.settings,
        error_class="Other",
        error_code=error_code,
        error_message=message,
    )
    memory.backoff[group_id] = entry
    memory.last_failure_of[group_id] = now
    duration = format_duration(entry.duration)
    findings.reasons.append(reason("BackoffStarted", group_id, duration=duration, error=message))


def note_failed(
    state: State,
    failed_of: Mapping[str, Sequence[Instance]],
    findings: Findings,
    now: Instant,
) -> None:
    """Count machines that could not be created, once each: event, backoff, a smaller request.

    Only of groups whose request is open: one that a failure has brought to nothing counts no further ones.
    """
    memory = state.memory
    seen: dict[str, str] = {}
    for group_id, failed in failed_of.items():
        by_error: dict[str, list[Instance]] = {}
        for instance in failed:
            error = seen[instance.provider_id] = _error_of(instance)
            by_error.setdefault(error, []).append(instance)
        for error in sorted(by_error):
            new = [one for one in by_error[error] if one.provider_id not in memory.seen_errors]
            if new and group_id in memory.scale_up_requests:
                _count_failure(state, group_id, new, _messages(by_error[error]), findings, now)
    memory.seen_errors = seen


def _count_failure(
    state: State,
    group_id: str,
    failed: list[Instance],
    messages: str,
    findings: Findings,
    now: Instant,
) -> None:
    memory, first, error = state.memory, failed[0].error, _error_of(failed[0])
    assert first is not None, "only machines with an error are counted"
    findings.failures.append(MachineFailure(group_id, first.error_code, len(failed)))
    findings.events += instances_failed(state, group_id, len(failed), error, messages)
    note_request(state, state.groups[group_id], -len(failed), now)
    entry = start_backoff(
        memory.backoff.get(group_id),
        now,
        state.settings,
        error_class=first.error_class,
        error_code=first.error_code,
        error_message=messages,
    )
    memory.backoff[group_id] = replace(entry, cause=cause_of(first))
    error = with_cause(cause_of(first), error)
    memory.last_failure_of[group_id] = now
    findings.reasons += note_shortage(state, group_id, cause_of(first), now)
    findings.reasons.append(reason("FailedInstance", group_id, instances=len(failed), error=error))
    findings.reasons.append(
        reason("BackoffStarted", group_id, duration=format_duration(entry.duration), error=error)
    )


def _messages(failed: Sequence[Instance]) -> str:
    """Return what the cloud says of all machines that failed alike, each message once."""
    found = sorted({one.error.error_message: None for one in failed if one.error})
    return ", ".join(found) + (", ..." if len(found) > _MANY_MESSAGES else "")


def _error_of(instance: Instance) -> str:
    assert instance.error is not None, "only failed machines have an error"
    return f"{instance.error.error_class}.{instance.error.error_code}"
