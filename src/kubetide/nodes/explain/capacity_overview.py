"""ProvisioningRequests that wait or have failed, and CapacityBuffers without capacity, for the page of ``kubetide status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubetide.loop.status import Cell, Table
from kubetide.nodes.capacity.provisioning.conditions import has_ended
from kubetide.nodes.capacity.provisioning.names import FAILED, PROVISIONED
from kubetide.nodes.explain.buffers import NO_INJECTION, BufferCapacity, capacity_of_buffers, missing_lines
from kubetide.nodes.explain.requests import request_sentence
from kubetide.nodes.state import State
from kubetide.objects.capacity import ProvisioningRequest, is_true
from kubetide.objects.meta import Key, key_of
from kubetide.units.time import Instant

_REQUESTS: Final = ("provisioning request", "class", "pods", "state", "more")
_BUFFERS: Final = ("capacity buffer", "pods", "on nodes", "on the way", "missing", "why", "more")

_MOST_EXPLAINED: Final = 3
"""Buffers of which the page says what each group answers, as all groups are asked for each."""

_SUFFIX: Final = ".autoscaling.x-k8s.io"
"""Of the classes that are served."""


class WaitingRequest(NamedTuple):
    """A request that waits or has failed, and why."""

    request: ProvisioningRequest
    failed: bool
    sentence: str


class WaitingBuffer(NamedTuple):
    """A buffer without all of its capacity, and why; empty where ``capacity`` says all that is known."""

    key: Key
    capacity: BufferCapacity
    why: str


def capacity_tables(state: State, now: Instant) -> Iterator[Table]:
    """Yield a table of each kind that this run serves."""
    settings = state.settings
    if settings.enable_provisioning_requests:
        yield _requests(state)
    if settings.capacity_buffer_pod_injection_enabled or settings.capacity_buffer_controller_enabled:
        yield _buffers(state, now)


def waiting_requests(state: State, *, retries_known: bool = True) -> list[WaitingRequest]:
    """Return the requests that wait and those that have failed: failed ones first, and of each the oldest first.

    Args:
        state: What is read.
        retries_known: Whether it has the memory of the loop that serves them, which knows when each is tried again.
    """
    found = []
    for request in state.capacity.requests:
        conditions = request.status.conditions
        failed = is_true(conditions, FAILED)
        if failed or not (has_ended(request) or is_true(conditions, PROVISIONED)):
            found.append(
                WaitingRequest(request, failed, request_sentence(state, request, retries_known=retries_known))
            )
    return sorted(found, key=lambda one: not one.failed)


def waiting_buffers(state: State, now: Instant) -> list[WaitingBuffer]:
    """Return the buffers without all of their capacity, in order of name."""
    off = not state.settings.capacity_buffer_pod_injection_enabled
    waiting = (
        WaitingBuffer(key, found, NO_INJECTION if off else found.why or found.limited)
        for key, found in sorted(capacity_of_buffers(state, now).items())
    )
    return [one for one in waiting if one.capacity.coming or one.capacity.missing or one.why]


def _requests(state: State) -> Table:
    rows: list[tuple[Cell, ...]] = []
    waiting = waiting_requests(state)
    for request, _, sentence in waiting:
        name, spec = "/".join(key_of(request)), request.spec
        pods = sum(one.count for one in spec.pod_sets or ())
        asked = f"ask: kubetide explain provisioningrequest {name}"
        rows.append((name, spec.provisioning_class_name.removesuffix(_SUFFIX), pods, sentence, asked))
    failed = sum(one.failed for one in waiting)
    counts = ((failed, "failed"), (len(waiting) - failed, "waiting"))
    found = " and ".join(f"{count} {state}" for count, state in counts if count)
    sentence = f"ProvisioningRequests: {found}." if found else ""
    return Table("provisioning requests that wait or failed", _REQUESTS, tuple(rows), sentence)


def _buffers(state: State, now: Instant) -> Table:
    rows: list[tuple[Cell, ...]] = []
    explained = 0
    for key, found, not_ready in waiting_buffers(state, now):
        name, why = "/".join(key), not_ready
        if found.missing and why in {"", found.limited} and explained < _MOST_EXPLAINED:
            explained += 1
            why = "; ".join(filter(None, (found.limited, *missing_lines(state, found, now))))
        there, coming, missing = found.there, found.coming, found.missing
        asked = f"ask: kubetide explain capacitybuffer {name}"
        rows.append((name, there + coming + missing, there, coming, missing, why, asked))
    sentence = f"CapacityBuffers without all of their capacity: {len(rows)}." if rows else ""
    return Table("capacity buffers that wait", _BUFFERS, tuple(rows), sentence)
