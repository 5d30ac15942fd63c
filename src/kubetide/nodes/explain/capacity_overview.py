"""ProvisioningRequests that wait or have failed, and CapacityBuffers without capacity, for the page of ``kubetide status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.loop.status import Cell, Table
from kubetide.nodes.capacity.provisioning.conditions import has_ended
from kubetide.nodes.capacity.provisioning.names import FAILED, PROVISIONED
from kubetide.nodes.explain.buffers import NO_INJECTION, capacity_of_buffers
from kubetide.nodes.explain.requests import request_sentence
from kubetide.nodes.state import State
from kubetide.objects.capacity import is_true
from kubetide.units.time import Instant

_REQUESTS: Final = ("provisioning request", "class", "pods", "state", "more")
_BUFFERS: Final = ("capacity buffer", "pods", "on nodes", "on the way", "missing", "why", "more")

_SUFFIX: Final = ".autoscaling.x-k8s.io"
"""Of the classes that are served."""


def capacity_tables(state: State, now: Instant) -> Iterator[Table]:
    """Yield a table of each kind that this run serves."""
    settings = state.settings
    if settings.enable_provisioning_requests:
        yield _requests(state)
    if settings.capacity_buffer_pod_injection_enabled or settings.capacity_buffer_controller_enabled:
        yield _buffers(state, now)


def _requests(state: State) -> Table:
    rows: list[tuple[bool, tuple[Cell, ...]]] = []
    for request in state.capacity.requests:
        conditions, spec = request.status.conditions, request.spec
        failed = is_true(conditions, FAILED)
        if not failed and (has_ended(request) or is_true(conditions, PROVISIONED)):
            continue
        name = f"{request.metadata.namespace}/{request.metadata.name}"
        pods = sum(one.count for one in spec.pod_sets or ())
        asked = f"ask: kubetide explain provisioningrequest {name}"
        served_by = spec.provisioning_class_name.removesuffix(_SUFFIX)
        rows.append((failed, (name, served_by, pods, request_sentence(state, request), asked)))
    # Failed ones first, and of each the oldest first.
    rows.sort(key=lambda row: not row[0])
    return Table("provisioning requests that wait or failed", _REQUESTS, tuple(row for _, row in rows))


def _buffers(state: State, now: Instant) -> Table:
    off = not state.settings.capacity_buffer_pod_injection_enabled
    rows: list[tuple[Cell, ...]] = []
    for key, found in sorted(capacity_of_buffers(state, now).items()):
        name = "/".join(key)
        there, coming, missing = found.there, found.coming, found.missing
        why = NO_INJECTION if off else found.why
        if coming or missing or why:
            asked = f"ask: kubetide explain capacitybuffer {name}"
            rows.append((name, there + coming + missing, there, coming, missing, why, asked))
    return Table("capacity buffers that wait", _BUFFERS, tuple(rows))
