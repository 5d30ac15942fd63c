"""ProvisioningRequests in a tick: open the bookings, serve a request, write the results.

Requests and pods take turns where both wait. A request of class check-capacity is answered from the capacity that
there is; for one of best-effort-atomic all the nodes that it lacks are bought at once, or none.

Source: Cluster Autoscaler, the wrapper orchestrator and provisioningrequest/besteffortatomic.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.provisioning.check import check
from kubetide.nodes.capacity.provisioning.conditions import accepted, since, with_condition
from kubetide.nodes.capacity.provisioning.expiry import end_expired
from kubetide.nodes.capacity.provisioning.names import (
    BOOKING_EXPIRED,
    FAILED,
    FOUND_MESSAGE,
    FOUND_REASON,
    MOST_EVENTS,
    NOT_FOUND_MESSAGE,
    NOT_FOUND_REASON,
    PROVISIONED,
    PROVISIONED_REASON,
    RESERVATION,
)
from kubetide.nodes.capacity.provisioning.queue import (
    book,
    current,
    note_written,
    pick,
    retry_time,
    to_check,
)
from kubetide.nodes.capacity.provisioning.tick import RequestsTick
from kubetide.nodes.decision import DeleteRequest, EventRecord, Write
from kubetide.nodes.facts.pods import consumed_request
from kubetide.nodes.facts.statuses import status_write
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.pending.pods import place_in_turn
from kubetide.nodes.state import State
from kubetide.objects.capacity import condition_of
from kubetide.objects.kinds import PROVISIONING_REQUESTS
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant, after, format_duration, format_rfc3339

SOURCE = "provisioning request"


def open_requests(
    state: State, placed: Iterable[tuple[Pod, str]], now: Instant, *, again: bool
) -> RequestsTick | None:
    """Return the tick's work on requests, with their bookings on the snapshot; None if they are off.

    Args:
        state: The state.
        placed: Pods that were placed in this tick, with the node's name.
        now: The time.
        again: Whether the tick plans anew, after an increase that failed: no further request is picked then.
    """
    if not state.settings.enable_provisioning_requests:
        return None
    tick = RequestsTick()
    if state.step != "scale_up":  # where the update step was one of its own, ``expire`` was called at its end
        end_expired(state, tick, now)
    if not again:
        pick(state, tick, now)
    book(state, tick, placed, now)
    return tick


def expire(state: State, now: Instant) -> tuple[Write, ...]:
    """End what has expired in a loop whose update step ends by itself; return the writes.

    Such a loop may go no further: the cluster is unhealthy, or a target size was corrected. Source: Cluster Autoscaler, which
    looks for expired requests before it checks these.
    """
    if not state.settings.enable_provisioning_requests:
        return ()
    tick = RequestsTick()
    end_expired(state, tick, now)
    return writes_of(state, tick)


def takes_turn(state: State, tick: RequestsTick | None, *, pods_wait: bool) -> bool:
    """Return whether this tick serves requests; call it once per tick that has something to serve."""
    if tick is None:
        return False
    memory = state.memory.requests
    turn = tick.waits and (memory.turn or not pods_wait)
    state.memory.requests = replace(memory, turn=not turn)
    tick.serving = turn
    return turn


def serve(state: State, tick: RequestsTick, now: Instant) -> tuple[str, list[Pod]]:
    """Answer the requests whose turn it is; return upstream's result, and the pods that need new nodes."""
    if asked := to_check(state, tick, now):
        some_fit = False
        for one, pods in asked:
            tick.changed[key_of(one)], fits = check(state, accepted(one, now), pods, now)
            some_fit = some_fit or fits
        if some_fit and not state.settings.advises:
            # As upstream, an answer counts as a scale-up: nothing is removed for a while after it.
            state.memory.last_scale_up = now
        return ("ScaleUpSuccessful" if some_fit else "ScaleUpNoOptionsAvailable"), []
    request = tick.picked
    assert request is not None, "there is a request to serve"
    every = [pod for one in tick.pods for pod in one]
    found = place_in_turn(state, every)
    if not found.unplaced:
        tick.changed[key_of(request)] = with_condition(
            request, PROVISIONED, "True", FOUND_REASON, FOUND_MESSAGE, now
        )
        return "ScaleUpNotNeeded", []
    tick.buying, tick.placed = True, tuple(key_of(pod) for pod, _ in found.placed)
    return "", list(found.unplaced)


def note_purchase(state: State, tick: RequestsTick, *, bought: bool, withheld: bool, now: Instant) -> None:
    """Note whether the nodes for the picked request could be bought. If not, none of its pods stays on the snapshot."""
    request = tick.picked
    if not tick.buying or request is None:
        return
    tick.buying = False
    if not bought:
        # As upstream: a request that holds nothing keeps no node from being removed.
        for key in tick.placed:
            state.snapshot.remove_pod(key)
    if withheld:
        tick.changed.pop(key_of(request), None)
    elif bought:
        tick.changed[key_of(request)] = with_condition(
            request, PROVISIONED, "True", PROVISIONED_REASON, FOUND_MESSAGE, now
        )
    else:
        tick.changed[key_of(request)] = with_condition(
            request, PROVISIONED, "False", NOT_FOUND_REASON, NOT_FOUND_MESSAGE, now
        )


def writes_of(state: State, tick: RequestsTick) -> tuple[Write, ...]:
    """Return the writes of requests; from here on the state holds them as written."""
    found: list[Write] = []
    for key in sorted(tick.changed):
        request = tick.changed[key]
        before = state.capacity.of(PROVISIONING_REQUESTS).get(key)
        if before is not None and before.status != request.status:
            found.append(status_write(PROVISIONING_REQUESTS, request))
            state.capacity.put(request, PROVISIONING_REQUESTS)
            note_written(state, request)
    for request in tick.deleted:
        meta = request.metadata
        found.append(DeleteRequest(meta.namespace, meta.name, meta.uid))
        state.capacity.drop(PROVISIONING_REQUESTS, key_of(request))
    if found:
        state.version += 1
    tick.changed, tick.deleted = {}, []
    return tuple(found)


def consumer_events(pods: Iterable[Pod]) -> list[EventRecord]:
    """Return upstream's event for pods that wait for a request's capacity; its reason is empty."""
    found = []
    for pod in list(pods)[:MOST_EVENTS]:
        meta = pod.metadata
        message = (
            "Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest "
            f"{meta.namespace}/{consumed_request(pod)}"
        )
        found.append(EventRecord("Pod", meta.name, "Normal", "", message, meta.namespace, meta.uid))
    return found


def request_reasons(state: State, tick: RequestsTick, now: Instant) -> list[Reason]:
    """Return a reason for each request with its state."""
    found: list[Reason] = []
    for request in current(state, tick):
        key = key_of(request)
        name = "/".join(key)
        said = condition_of(request.status.conditions, PROVISIONED)
        failed = condition_of(request.status.conditions, FAILED)
        over = condition_of(request.status.conditions, BOOKING_EXPIRED)
        if failed is not None and failed.status == "True":
            found.append(reason("RequestFailed", name, why=failed.message))
        elif over is not None and over.status == "True":
            found.append(reason("RequestOver", name, why=over.message))
        elif said is not None and said.status == "True":
            until = after(since(request, PROVISIONED) or now, RESERVATION)
            pods = sum(one.count for one in request.spec.pod_sets or ())
            found.append(
                reason("RequestBooked", name, pods=pods, why=said.message, until=format_rfc3339(until))
            )
        elif said is not None:
            wait = format_duration(retry_time(state, request))
            found.append(reason("RequestWaits", name, why=said.message, wait=wait))
    return found
