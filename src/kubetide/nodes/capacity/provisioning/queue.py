"""The queue of ProvisioningRequests: what is booked, backoff, and which request is served next.

Source: Cluster Autoscaler, processors/provreq: booking, the injector.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubetide.nodes.capacity.provisioning.conditions import (
    is_booked,
    is_check_capacity,
    is_served,
    since,
    with_condition,
)
from kubetide.nodes.capacity.provisioning.names import (
    BOOKING_EXPIRED,
    CONSUMED_MESSAGE,
    CONSUMED_REASON,
    FAILED,
    NO_PODS_REASON,
    NOT_BOOKED_REASON,
    PROVISIONED,
)
from kubetide.nodes.capacity.provisioning.pods import NoPods, pods_of
from kubetide.nodes.capacity.provisioning.tick import RequestsTick
from kubetide.nodes.facts.pods import consumed_request
from kubetide.nodes.state import State
from kubetide.objects.capacity import ProvisioningRequest, is_true
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.scheduling.placement import place
from kubetide.units.time import Duration, Instant, after


def key_of(request: ProvisioningRequest) -> Key:
    """Return (namespace, name)."""
    return request.metadata.namespace, request.metadata.name


def current(state: State, tick: RequestsTick) -> list[ProvisioningRequest]:
    """Return the requests, oldest first, with the changes of this tick."""
    gone = [key_of(one) for one in tick.deleted]
    found = [tick.changed.get(key_of(one), one) for one in state.capacity.requests]
    return [one for one in found if key_of(one) not in gone]


def book(state: State, tick: RequestsTick, placed: Iterable[tuple[Pod, str]], now: Instant) -> None:
    """Place the pods of all booked requests on the snapshot, so that nothing else takes their capacity in this tick.

    Args:
        state: The snapshot is added to.
        tick: Takes the number of pods that are booked for.
        placed: Pods that were placed in this tick, with the node's name.
        now: The time.
    """
    booked = [one for one in current(state, tick) if is_booked(one, state.settings)]
    if not booked:
        return
    there = _consumers(state, placed)
    pods_to_place: list[Pod] = []
    for request in booked:
        key = key_of(request)
        asked = sum(one.count for one in request.spec.pod_sets or ())
        if there.get(key, 0) >= asked:
            tick.changed[key] = with_condition(
                request, BOOKING_EXPIRED, "True", CONSUMED_REASON, CONSUMED_MESSAGE, now
            )
            continue
        try:
            pods = [_apart(state, pod) for one in pods_of(request, state.capacity) for pod in one]
        except NoPods as error:
            message = f"Couldn't create pods, err: {error}"
            tick.changed[key] = with_condition(request, FAILED, "True", NOT_BOOKED_REASON, message, now)
            continue
        tick.booked[key] = len(pods)
        pods_to_place += pods
    place(state.snapshot, pods_to_place, start=state.memory.rotation)


def pick(state: State, tick: RequestsTick, now: Instant) -> None:
    """Find the request to serve next, and the requests that are checked in the same batch."""
    settings = state.settings
    for request in current(state, tick):
        if tick.picked is not None and len(tick.batch) >= _batch_size(state) - 1:
            break
        if not is_served(request, settings) or not _is_due(state, request, now):
            continue
        checks = is_check_capacity(request, settings.check_capacity_processor_instance)
        if tick.picked is not None and not checks:
            continue
        try:
            pods = pods_of(request, state.capacity)
        except NoPods as error:
            tick.changed[key_of(request)] = with_condition(
                request, FAILED, "True", NO_PODS_REASON, str(error), now
            )
            continue
        apart = [[_apart(state, pod) for pod in one] for one in pods]
        if tick.picked is None:
            tick.picked, tick.pods = request, apart
            if not checks:
                break
        else:
            tick.batch.append((request, apart))


def note_try(state: State, request: ProvisioningRequest) -> None:
    """Note an attempt at the request; after a failure the wait before the next attempt doubles."""
    memory, settings = state.memory.requests, state.settings
    if since(request, PROVISIONED) is None:
        return
    retry = dict(memory.retry)
    longer = min(2 * retry_time(state, request), settings.provisioning_request_max_backoff_time)
    retry.pop(request.metadata.uid, None)
    retry[request.metadata.uid] = Duration(longer)
    most = max(settings.provisioning_request_max_backoff_cache_size, 1)
    state.memory.requests = replace(memory, retry=dict(list(retry.items())[-most:]))


def retry_time(state: State, request: ProvisioningRequest) -> Duration:
    """Return how long the request waits after it found no capacity."""
    initial = state.settings.provisioning_request_initial_backoff_time
    return state.memory.requests.retry.get(request.metadata.uid, initial)


def _batch_size(state: State) -> int:
    settings = state.settings
    return (
        settings.check_capacity_provisioning_request_max_batch_size
        if settings.check_capacity_batch_processing
        else 1
    )


def _is_due(state: State, request: ProvisioningRequest, now: Instant) -> bool:
    conditions = request.status.conditions
    if is_true(conditions, FAILED) or is_true(conditions, PROVISIONED):
        return False
    tried = since(request, PROVISIONED)
    return tried is None or after(tried, retry_time(state, request)) < now


def _consumers(state: State, placed: Iterable[tuple[Pod, str]]) -> dict[Key, int]:
    """Return how many pods of each request have a node, or were placed in this tick."""
    found: dict[Key, int] = {}
    bound = (pod for pod in state.pods.values() if pod.spec.node_name)
    for pod in (*bound, *(pod for pod, _ in placed)):
        name = consumed_request(pod)
        if name is not None:
            key = (pod.metadata.namespace, name)
            found[key] = found.get(key, 0) + 1
    return found


def _apart(state: State, pod: Pod) -> Pod:
    """Return the pod under a name that no pod has: the snapshot knows pods by their names."""
    name = pod.metadata.name
    while (pod.metadata.namespace, name) in state.pods:
        name += "-requested"
    return pod if name == pod.metadata.name else replace(pod, metadata=replace(pod.metadata, name=name))
