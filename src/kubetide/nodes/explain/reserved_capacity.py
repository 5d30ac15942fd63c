"""Capacity on a node that nothing uses yet: booked for ProvisioningRequests, or kept free by CapacityBuffers."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kubetide.nodes.capacity.buffers.inject import placeholders
from kubetide.nodes.capacity.planned_names import APART
from kubetide.nodes.capacity.provisioning.conditions import is_booked, since
from kubetide.nodes.capacity.provisioning.names import PROVISIONED, RESERVATION
from kubetide.nodes.state import State
from kubetide.objects.capacity import ProvisioningRequest
from kubetide.objects.kinds import CAPACITY_BUFFERS, PROVISIONING_REQUESTS
from kubetide.objects.meta import controller_of, key_of
from kubetide.scheduling import hint_key
from kubetide.units.time import after, format_rfc3339

BOOKED: Final = "CapacityBooked"
"""Why a node stays whose blocking pod stands for booked capacity; not a word of upstream."""


def request_of(state: State, pod: str) -> ProvisioningRequest | None:
    """Return the request for which a pod (namespace/name) stands that does not exist; None for any other pod."""
    namespace, _, name = pod.partition("/")
    return None if (namespace, name) in state.pods else _request_named(state, namespace, name)


def is_booking(state: State, pod: str) -> bool:
    """Return whether a pod (namespace/name) only stands for a request's capacity."""
    return request_of(state, pod) is not None


def blocker_text(state: State, pod: str, why: str) -> str:
    """Return what keeps a node, in words: a pod (namespace/name) and why, or the request for which it stands."""
    request = request_of(state, pod)
    if request is None:
        return f"pod {pod}: {why}"
    name = f"{PROVISIONING_REQUESTS.kind} {'/'.join(key_of(request))}"
    at = since(request, PROVISIONED)
    if at is None or not is_booked(request, state.settings):
        return f"capacity on it was booked for {name}"
    return f"capacity on it is booked for {name} until {format_rfc3339(after(at, RESERVATION))}"


def reserved_text(state: State, node: str) -> str:
    """Return for whom capacity of the node is reserved by the last tick; empty for nobody."""
    found: Counter[str] = Counter()
    for pod in placeholders(state):
        owner = controller_of(pod.metadata)
        if owner is not None and state.memory.hints.get(hint_key(pod)) == node:
            found[f"{CAPACITY_BUFFERS.kind} {pod.metadata.namespace}/{owner.name}"] += 1
    for key, where in state.memory.requests.booked.items():
        request = _request_named(state, *key.split("/", 1)) if where == node else None
        if request is not None and is_booked(request, state.settings):
            found[f"{PROVISIONING_REQUESTS.kind} {'/'.join(key_of(request))}"] += 1
    return ", ".join(
        f"{count} {'pod' if count == 1 else 'pods'} of {name}" for name, count in sorted(found.items())
    )


def _request_named(state: State, namespace: str, pod: str) -> ProvisioningRequest | None:
    """Return the request whose pods have such a name: that of the request, a pod set's number, and the pod's own."""
    while pod.endswith(APART):
        pod = pod.removesuffix(APART)
    name = pod.rpartition("-")[0].rpartition("-")[0]
    return state.capacity.of(PROVISIONING_REQUESTS).get((namespace, name))
