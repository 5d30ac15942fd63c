"""What a VPA object asks for, with the defaults of absent fields.

Source: vertical-pod-autoscaler 1.8.1, pkg/utils/vpa.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.objects.base import Quantities
from kubetide.objects.vpa import (
    ANY_CONTAINER,
    CONTAINER_OFF,
    INITIAL,
    OFF,
    RECREATE,
    REQUESTS_AND_LIMITS,
    ContainerPolicy,
    ResourcePolicy,
    StartupBoost,
    VpaSpec,
)
from kubetide.units.quantity import Quantity, QuantityError

WITHOUT_UPDATES: Final[Mapping[str, str]] = {
    OFF: "update mode Off: it only recommends, no pod is changed",
    INITIAL: "update mode Initial: only new pods get the recommendation",
}
"""The update modes in which running pods stay as they are, and what that means, for people."""


def update_mode(spec: VpaSpec) -> str:
    """Return how pods get their recommendation; ``Recreate`` where the object does not say."""
    policy = spec.update_policy
    return (policy.update_mode if policy is not None else None) or RECREATE


def container_policy(policy: ResourcePolicy | None, container: str) -> ContainerPolicy | None:
    """Return the policy that names the container, else the last one for any container, else None."""
    found = None
    for one in (policy.container_policies if policy is not None else None) or ():
        if one.container_name == container:
            return one
        if one.container_name == ANY_CONTAINER:
            found = one
    return found


def is_container_off(policy: ResourcePolicy | None, container: str) -> bool:
    """Return whether the container is left as it is."""
    one = container_policy(policy, container)
    return one is not None and one.mode == CONTAINER_OFF


def controlled_values(policy: ResourcePolicy | None, container: str) -> str:
    """Return ``RequestsAndLimits`` or ``RequestsOnly``; the former where the policy does not say."""
    one = container_policy(policy, container)
    return REQUESTS_AND_LIMITS if one is None or one.controlled_values is None else one.controlled_values


def startup_boost(spec: VpaSpec, container: str) -> StartupBoost | None:
    """Return the container's start-up boost: that of its policy, else that of the whole pod."""
    one = container_policy(spec.resource_policy, container)
    if one is not None and one.startup_boost is not None:
        return one.startup_boost
    return spec.startup_boost


def allowed(amounts: Quantities | None, resource: str) -> Quantity | None:
    """Return a bound of ``minAllowed`` or ``maxAllowed``; None where there is none that can be read."""
    if amounts is None or resource not in amounts:
        return None
    try:
        return Quantity.parse(amounts[resource])
    except QuantityError:
        return None
