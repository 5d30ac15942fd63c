"""The queue of ProvisioningRequests: what is booked, backoff, and which request is served next.

Source: Cluster Autoscaler, processors/provreq: booking, the injector.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubetide.nodes.capacity.planned_names import apart
from kubetide.nodes.capacity.provisioning.conditions import (
    accepted,
    is_booked,
    is_check_capacity,
    is_over,
    is_served,
    since,
    with_condition,
)
from kubetide.nodes.capacity.provisioning.names import (
    ACCEPTED,
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
from kubetide.nodes.facts.pods import consumed_request, consumes_request
from kubetide.nodes.scale_up.pending.pods import hints_that_hold, is_too_new, place_in_turn
from kubetide.nodes.state import State
from kubetide.objects.capacity import ProvisioningRequest, condition_of, is_true
from kubetide.objects.meta import Key, key_of
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant


def current(state: State, tick: RequestsTick) -> list[ProvisioningRequest]:
    """Return the requests, oldest first, with the changes of this tick."""
    gone = [key_of(one) for one in tick.deleted]
    found = [tick.changed.get(key_of(one), one) for one in state.capacity.requests]
    return [one for one in found if key_of(one) not in gone]


def in_turn(state: State, tick: RequestsTick) -> list[ProvisioningRequest]:
    """Return the requests in the order in which they are served: the oldest that were never tried, then by their last try.

    So requests that no capacity is ever found for use up no turn of another one. Cluster Autoscaler has no such order.
    """
    return sorted(current(state, tick), key=lambda one: since(one, PROVISIONED) or Instant(0))


def book(state: State, tick: RequestsTick, placed: Iterable[tuple[Pod, str]], now: Instant) -> None:
    """Place the pods of all booked requests on the snapshot, so that nothing else takes their capacity in this tick.

    Each stays on the node of the tick before while it fits there. Source: the hints of upstream's scheduling simulator.

    Args:
        state: The snapshot is added to.
        tick: Takes the number of pods that are booked for.
        placed: Pods that were placed in this tick, with the node's name.
        now: The time.
    """
    booked = [one for one in current(state, tick) if is_booked(one, state.settings)]
    there = _consumers(state, placed) if booked else {}
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
            pods = [apart(state, pod) for one in pods_of(request, state.capacity) for pod in one]
        except NoPods as error:
            message = f"Couldn't create pods, err: {error}"
            tick.changed[key] = with_condition(request, FAILED, "True", NOT_BOOKED_REASON, message, now)
            continue
        tick.booked[key] = len(pods)
        pods_to_place += pods
    memory = state.memory.requests
    if not pods_to_place and not memory.booked:
        return
    found = place_in_turn(state, pods_to_place, hints=hints_that_hold(state, memory.booked))
    state.memory.requests = replace(memory, booked=dict(sorted(found.hints.items())))


def pick(state: State, tick: RequestsTick, now: Instant) -> None:
    """Pick the request that is due next, in every loop, whether or not requests have the turn.

    It is accepted, and waits longer before its next try. One of class check-capacity is accepted only when it is answered,
    if several of these are answered at once. Pods that are younger than their scale-up delay are left out; a request all of
    whose pods are so young is accepted, and the next one is picked.

    Source: Cluster Autoscaler, the injector.
    """
    for request in in_turn(state, tick):
        if not is_served(request, state.settings) or not _is_due(state, request, now):
            continue
        pods = _pods(state, tick, request, now)
        if pods is None or _was_not_written(state, tick, request, now):
            continue
        in_batch = bool(_batch_size(state)) and _is_check(state, request)
        old_enough = [[] if one and is_too_new(one[0], state, now) else one for one in pods]
        if not any(old_enough):
            if not in_batch and since(request, ACCEPTED) is None:
                tick.changed[key_of(request)] = accepted(request, now)
            continue
        note_try(state, request)
        picked = request
        if not in_batch:
            picked = tick.changed[key_of(request)] = accepted(request, now)
        tick.picked, tick.pods, tick.whole = picked, old_enough, pods
        tick.processed = True
        return


def to_check(
    state: State, tick: RequestsTick, now: Instant
) -> list[tuple[ProvisioningRequest, list[list[Pod]]]]:
    """Return the requests of class check-capacity that this turn answers, with their pods; in turn.

    That is the picked one, if it is of this class. With batches it is as many as are due, whatever was picked.
    Source: Cluster Autoscaler, provisioningrequest/orchestrator: classes in order, of which this one fetches its batch.
    """
    picked = tick.picked
    assert picked is not None, "there is a request to serve"
    size = _batch_size(state)
    if size <= 1:
        return [(picked, tick.pods)] if _is_check(state, picked) else []
    found: list[tuple[ProvisioningRequest, list[list[Pod]]]] = []
    for request in in_turn(state, tick):
        if len(found) >= size:
            break
        if not _is_check(state, request):
            continue
        if key_of(request) == key_of(picked):
            found.append((request, tick.whole))
        elif _is_due(state, request, now) and (pods := _pods(state, tick, request, now)) is not None:
            if _was_not_written(state, tick, request, now):
                continue
            note_try(state, request)
            found.append((request, pods))
    return found


def note_try(state: State, request: ProvisioningRequest) -> None:
    """Note an attempt at the request; after a failure the wait before the next attempt doubles."""
    memory, settings = state.memory.requests, state.settings
    if since(request, PROVISIONED) is None:
        return
    retry = dict(memory.retry)
    longer = min(2 * retry_time(state, request), settings.provisioning_request_max_backoff_time)
    retry.pop(request.metadata.uid, None)
    retry[request.metadata.uid] = Duration(longer)
    # 0 is no limit, as in upstream's cache.
    most = settings.provisioning_request_max_backoff_cache_size
    state.memory.requests = replace(memory, retry=dict(list(retry.items())[-most:]))


def retry_time(state: State, request: ProvisioningRequest) -> Duration:
    """Return how long the request waits after it found no capacity."""
    initial = state.settings.provisioning_request_initial_backoff_time
    return state.memory.requests.retry.get(request.metadata.uid, initial)


def note_written(state: State, request: ProvisioningRequest) -> None:
    """Note that the request's acceptance is written over the version that is held. Requests that are over are not picked again."""
    at = since(request, ACCEPTED)
    if at is not None and not is_true(request.status.conditions, BOOKING_EXPIRED):
        memory, meta = state.memory.requests, request.metadata
        written = {**memory.written, meta.uid: (meta.resource_version, at)}
        state.memory.requests = replace(memory, written=written)


def _was_not_written(state: State, tick: RequestsTick, request: ProvisioningRequest, now: Instant) -> bool:
    """Return whether the API server still has the version that was written over; if so, only accept the request again.

    It is served once that is written: a request whose status is refused must not hold up others, or hold nodes.

    Source: Cluster Autoscaler, the injector, which goes on to the next request after a failed write.
    """
    version, at = state.memory.requests.written.get(request.metadata.uid, ("", None))
    if at is None or version != request.metadata.resource_version or since(request, ACCEPTED) == at:
        return False
    tick.changed[key_of(request)] = accepted(request, now)
    return True


def _batch_size(state: State) -> int:
    """Return how many requests of class check-capacity are answered at once; 0 where that is off."""
    settings = state.settings
    if not settings.check_capacity_batch_processing:
        return 0
    return settings.check_capacity_provisioning_request_max_batch_size


def _is_check(state: State, request: ProvisioningRequest) -> bool:
    return is_check_capacity(request, state.settings.check_capacity_processor_instance)


def _pods(
    state: State, tick: RequestsTick, request: ProvisioningRequest, now: Instant
) -> list[list[Pod]] | None:
    """Return the request's pods, by pod set; None where they cannot be built, which fails the request."""
    try:
        pods = pods_of(request, state.capacity)
    except NoPods as error:
        tick.changed[key_of(request)] = with_condition(
            request, FAILED, "True", NO_PODS_REASON, str(error), now
        )
        tick.processed = True
        return None
    return [[apart(state, pod) for pod in one] for one in pods]


def _is_due(state: State, request: ProvisioningRequest, now: Instant) -> bool:
    conditions = request.status.conditions
    answer = condition_of(conditions, PROVISIONED)
    if is_true(conditions, FAILED) or (answer is not None and answer.status != "False"):
        return False
    tried = since(request, PROVISIONED)
    return tried is None or is_over(tried, retry_time(state, request), now)


def _consumers(state: State, placed: Iterable[tuple[Pod, str]]) -> dict[Key, int]:
    """Return how many pods of each request have a node in the snapshot, as they were bound, nominated or placed in this tick.

    Source: Cluster Autoscaler, booking. Expendable pods and those on unknown nodes are not in the snapshot.
    """
    found: dict[Key, int] = {}
    known = (pod for key, pod in state.pods.items() if consumes_request(pod) and _has_node(state, key, pod))
    for pod in (*known, *(pod for pod, _ in placed)):
        name = consumed_request(pod)
        if name is not None:
            of = (pod.metadata.namespace, name)
            found[of] = found.get(of, 0) + 1
    return found


def _has_node(state: State, key: Key, pod: Pod) -> bool:
    if not (pod.spec.node_name or pod.status.nominated_node_name):
        return False
    node = state.snapshot.node_of(key)
    return node is not None and node in state.snapshot
