"""Amounts of resources, and limits that keep their ratio to requests.

Source: vertical-pod-autoscaler 1.8.1, pkg/utils/vpa/limit_and_request_scaling.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.objects.base import Quantities
from kubetide.objects.pod import Container, Pod
from kubetide.units.quantity import ZERO, Quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
RESOURCES: Final = (CPU, MEMORY)
"""Resources that VPA scales."""

MAX_INT64: Final = (1 << 63) - 1

Amounts = dict[str, Quantity]
"""Resource name to amount."""


def read_amounts(quantities: Quantities | None) -> Amounts:
    """Return quantities as exact numbers. Raises: QuantityError."""
    return {name: Quantity.parse(value) for name, value in (quantities or {}).items()}


def running_resources(pod: Pod, container: Container) -> tuple[Amounts, Amounts]:
    """Return requests and limits that the container runs with: those of its status, else those of its spec.

    Raises: QuantityError.
    """
    found = container.resources
    for status in pod.status.container_statuses or ():
        if status.name == container.name and status.resources is not None:
            found = status.resources
    return read_amounts(found.requests), read_amounts(found.limits)


def scaled(
    resource: str, amount: Quantity, base: Quantity, result: Quantity, *, up: bool = False
) -> tuple[Quantity, bool]:
    """Return what has the same ratio to ``amount`` as ``result`` has to ``base``, and whether it was capped.

    CPU is calculated in whole thousandths, anything else in whole units; the rest is cut off, or rounded up.
    More than an int64 holds is capped to the largest.

    Args:
        base: Not zero.
    """
    exponent = -3 if resource == CPU else 0
    a, b, r = ((one.milli_value() if resource == CPU else one.value()) for one in (amount, base, result))
    product = a * r
    found = -(-product // b) if up else product // b
    fits = -MAX_INT64 - 1 <= found <= MAX_INT64
    return Quantity(found if fits else MAX_INT64, exponent, amount.format), not fits


def proportional_limit(
    resource: str, limit: Quantity, request: Quantity, target: Quantity, default: Quantity
) -> tuple[Quantity | None, str]:
    """Return the limit that belongs to the request ``target``, None for no limit, and a remark for people.

    The ratio of limit to request stays. A limit that is absent (zero) is the LimitRange's ``default``; a
    request that is absent counts as equal to the limit.
    """
    limit = limit if limit.value() else default
    if not limit.value():
        return None, f"{resource}: limit NOT set since originalLimit is nil or 0"
    if not target.value():
        return None, f"{resource}: limit NOT set since recommendedRequest is nil or 0"
    if not request.value() or request.milli_value() == limit.milli_value():
        return target, ""
    result, capped = scaled(resource, limit, request, target)
    return (
        result,
        f"{resource}: failed to keep limit to request ratio; capping limit to int64" if capped else "",
    )


def proportional_limits(
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity],
    target: Mapping[str, Quantity],
    defaults: Mapping[str, Quantity],
) -> tuple[Amounts, list[str]]:
    """Return the limits of CPU and memory that belong to ``target``, and remarks for people.

    Without any limit there are no remarks either.
    """
    found: Amounts = {}
    remarks = []
    for resource in RESOURCES:
        limit, remark = proportional_limit(
            resource,
            limits.get(resource, ZERO),
            requests.get(resource, ZERO),
            target.get(resource, ZERO),
            defaults.get(resource, ZERO),
        )
        if limit is not None:
            found[resource] = limit
        if remark:
            remarks.append(remark)
    return found, remarks if found else []


def bounding_request(
    resource: str, limit: Quantity, request: Quantity, bound: Quantity, default: Quantity
) -> Quantity:
    """Return the request whose limit, in the present ratio, is ``bound``; zero if nothing bounds it."""
    limit = limit if limit.value() else default
    if not limit.value():
        return ZERO
    if not request.value():
        return bound
    return scaled(resource, request, limit, bound)[0]
