"""Expired ProvisioningRequests and bookings: they end, and are deleted later.

Source: Cluster Autoscaler, processors/provreq, Refresh: at the start of each loop, once the cloud was read.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.capacity.provisioning.conditions import (
    created,
    has_ended,
    is_over,
    is_served,
    since,
    with_condition,
)
from kubetide.nodes.capacity.provisioning.names import (
    BOOKING_EXPIRED,
    EXPIRATION,
    EXPIRED_MESSAGE,
    EXPIRED_REASON,
    FAILED,
    MOST_UPDATED,
    PROVISIONED,
    RESERVATION,
    RESERVATION_OVER_MESSAGE,
    RESERVATION_OVER_REASON,
)
from kubetide.nodes.capacity.provisioning.tick import RequestsTick
from kubetide.nodes.memory import RequestsMemory
from kubetide.nodes.state import State
from kubetide.objects.capacity import ProvisioningRequest, is_true
from kubetide.objects.meta import key_of
from kubetide.units.time import Instant, after


def end_expired(state: State, tick: RequestsTick, now: Instant) -> None:
    """End expired bookings and requests, and delete requests that ended long ago; forget those that wait no more."""
    _forget_gone(state)
    over: list[ProvisioningRequest] = []
    failed: list[ProvisioningRequest] = []
    for request in state.capacity.requests:
        if len(over) >= MOST_UPDATED:
            break
        if not is_served(request, state.settings) or has_ended(request):
            continue
        provisioned, made = since(request, PROVISIONED), created(request)
        if is_true(request.status.conditions, PROVISIONED):
            # A time that cannot be read would hold the capacity for ever.
            if provisioned is None or is_over(provisioned, RESERVATION, now):
                over.append(request)
        elif len(failed) < MOST_UPDATED - len(over) and made is not None and after(made, EXPIRATION) < now:
            failed.append(request)
    for request in over:
        tick.changed[key_of(request)] = with_condition(
            request, BOOKING_EXPIRED, "True", RESERVATION_OVER_REASON, RESERVATION_OVER_MESSAGE, now
        )
    for request in failed:
        tick.changed[key_of(request)] = with_condition(
            request, FAILED, "True", EXPIRED_REASON, EXPIRED_MESSAGE, now
        )
    for request in state.capacity.requests:
        ended = [at for at in (since(request, PROVISIONED), since(request, FAILED)) if at is not None]
        if any(after(at, EXPIRATION) < now for at in ended):
            tick.deleted.append(request)
            tick.changed.pop(key_of(request), None)


def _forget_gone(state: State) -> None:
    """Forget the backoff and the writes of requests that were deleted or wait no more."""
    memory: RequestsMemory = state.memory.requests
    if not memory.retry and not memory.written:
        return
    waiting = {
        one.metadata.uid: None
        for one in state.capacity.requests
        if not is_true(one.status.conditions, PROVISIONED) and not has_ended(one)
    }
    retry = {uid: time for uid, time in memory.retry.items() if uid in waiting}
    written = {uid: write for uid, write in memory.written.items() if uid in waiting}
    if len(retry) < len(memory.retry) or len(written) < len(memory.written):
        state.memory.requests = replace(memory, retry=retry, written=written)
