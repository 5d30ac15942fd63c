"""Consumable capacity: how much of a device a request consumes, and whether that is free.

Amounts are in billionths. Source: dynamic-resource-allocation v1.36, KEP-5075.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.objects.resource import CapacityRange, CapacityRequestPolicy, Device, DeviceCapacity
from kubetide.scheduling.devices.offers import nano
from kubetide.units.quantity import Quantity

Amounts = Mapping[str, int]
"""Billionths by capacity name."""

_UNIT = 1_000_000_000


def consumption(device: Device, requested: Amounts) -> dict[str, int]:
    """Return the consumed amount of each capacity: the request rounded by the policy, else the default or all."""
    return {
        name: _consumed(requested.get(name), capacity) for name, capacity in (device.capacity or {}).items()
    }


def has_capacity(device: Device, requested: Amounts, taken: Amounts, taking: Amounts) -> bool:
    """Return whether a request's amounts obey the policies and are free.

    Args:
        device: Of which device.
        requested: What the request names; a name that the device lacks rules it out.
        taken: What claims that are allocated use of it.
        taking: What this search has given out of it so far.
    """
    capacities = device.capacity or {}
    if any(name not in capacities for name in requested):
        return False
    for name, amount in consumption(device, requested).items():
        capacity = capacities[name]
        if _violates(amount, capacity.request_policy):
            return False
        if taken.get(name, 0) + taking.get(name, 0) + amount > nano(capacity.value):
            return False
    return True


def _consumed(requested: int | None, capacity: DeviceCapacity) -> int:
    policy = capacity.request_policy
    if requested is None:
        given = policy.default if policy is not None and policy.default is not None else capacity.value
        return nano(given)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded(requested, policy.valid_range)
    for valid in policy.valid_values or ():
        if requested <= nano(valid):
            return nano(valid)
    return requested


def _rounded(requested: int, valid: CapacityRange) -> int:
    """Round up to the next step above the minimum; steps are whole numbers."""
    least = nano(valid.min or "0")
    if requested < least:
        return least
    step = 0 if valid.step is None else Quantity.parse(valid.step).value()
    if not step:
        return requested
    start = -(-least // _UNIT)
    steps = -((start - -(-requested // _UNIT)) // step)
    return (start + step * steps) * _UNIT


def _violates(amount: int, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == nano(policy.default)):
        return False
    valid = policy.valid_range
    if valid is None:
        values = policy.valid_values or ()
        return bool(values) and all(amount != nano(one) for one in values)
    if valid.max is not None and amount > nano(valid.max):
        return True
    step = 0 if valid.step is None else Quantity.parse(valid.step).value()
    start = 0 if valid.min is None else Quantity.parse(valid.min).value()
    return bool(step) and (-(-amount // _UNIT) - start) % step != 0
