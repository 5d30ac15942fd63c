"""Conditions of a ProvisioningRequest: how to read and how to change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from kubetide.nodes.capacity.provisioning.names import (
    ACCEPTED,
    ACCEPTED_MESSAGE,
    BEST_EFFORT_ATOMIC,
    BOOKING_EXPIRED,
    CHECK_CAPACITY,
    FAILED,
    PROCESSOR_INSTANCE,
    PROVISIONED,
)
from kubetide.nodes.settings import Settings
from kubetide.objects.capacity import (
    ProvisioningRequest,
    StatusCondition,
    condition_of,
    is_true,
)
from kubetide.units.time import Duration, Instant, between, format_rfc3339, instant_of


def is_check_capacity(request: ProvisioningRequest, instance: str) -> bool:
    """Return whether the request only checks capacity, and names this processor.

    Args:
        request: The request.
        instance: ``--check-capacity-processor-instance``; a request names it in its parameters, or (the older
            way) in front of its class.
    """
    named = (request.spec.parameters or {}).get(PROCESSOR_INSTANCE, "")
    if named or not instance:
        return named == instance and request.spec.provisioning_class_name == CHECK_CAPACITY
    return request.spec.provisioning_class_name == instance + CHECK_CAPACITY


def is_served(request: ProvisioningRequest, settings: Settings) -> bool:
    """Return whether this program serves the request's class."""
    instance = settings.check_capacity_processor_instance
    if request.spec.provisioning_class_name == BEST_EFFORT_ATOMIC:
        return not instance
    return is_check_capacity(request, instance)


def has_ended(request: ProvisioningRequest) -> bool:
    """Return whether the request has failed, or its booking is over."""
    conditions = request.status.conditions
    return is_true(conditions, FAILED) or is_true(conditions, BOOKING_EXPIRED)


def is_booked(request: ProvisioningRequest, settings: Settings) -> bool:
    """Return whether capacity is booked for the request."""
    served = is_served(request, settings) and not has_ended(request)
    return served and is_true(request.status.conditions, PROVISIONED)


def since(request: ProvisioningRequest, kind: str) -> Instant | None:
    """Return when the condition was last written, None without the condition."""
    found = condition_of(request.status.conditions, kind)
    return None if found is None else instant_of(found.last_transition_time)


def is_over(begun: Instant, time: Duration, now: Instant) -> bool:
    """Return whether a time since the last writing of a condition is over; it is where a clock that was ahead wrote it."""
    return abs(between(begun, now)) > time


def created(request: ProvisioningRequest) -> Instant | None:
    """Return when the request was created."""
    return instant_of(request.metadata.creation_timestamp)


def with_condition(
    request: ProvisioningRequest,
    kind: str,
    status: Literal["True", "False"],
    reason: str,
    message: str,
    now: Instant,
) -> ProvisioningRequest:
    """Return the request with the condition; its time is now even where nothing changes, as retries count from it."""
    made = StatusCondition(
        type=kind,
        status=status,
        observed_generation=request.metadata.generation,
        last_transition_time=format_rfc3339(now),
        reason=reason,
        message=message,
    )
    before = request.status.conditions or ()
    if condition_of(before, kind) is None:
        conditions = (*before, made)
    else:
        conditions = tuple(made if one.type == kind else one for one in before)
    return replace(request, status=replace(request.status, conditions=conditions))


def accepted(request: ProvisioningRequest, now: Instant) -> ProvisioningRequest:
    """Return the request with the condition that it is looked at."""
    return with_condition(request, ACCEPTED, "True", ACCEPTED, ACCEPTED_MESSAGE, now)


def with_detail(request: ProvisioningRequest, name: str, value: str | None) -> ProvisioningRequest:
    """Return the request with a detail of its class set; None removes the detail."""
    details: Mapping[str, str] = request.status.provisioning_class_details or {}
    left = {key: text for key, text in details.items() if key != name}
    if value is not None:
        left[name] = value
    return replace(request, status=replace(request.status, provisioning_class_details=left or None))
