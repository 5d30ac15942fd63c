"""Container policies of a VPA, and the bounds that they set; read by recommender, updater and admission."""

from __future__ import annotations

from kubetide.objects.vpa import ANY_CONTAINER, ContainerPolicy, ResourcePolicy
from kubetide.units.quantity import Quantity, QuantityError

__all__ = ["allowed", "container_policy"]


def container_policy(policy: ResourcePolicy | None, container: str) -> ContainerPolicy | None:
    """Return the policy of a container: the first with its name, else the last for ``*``, else None."""
    any_container = None
    for one in (policy and policy.container_policies) or ():
        if one.container_name == container:
            return one
        if one.container_name == ANY_CONTAINER:
            any_container = one
    return any_container


def allowed(amounts: dict[str, str | int | float] | None, resource: str) -> Quantity | None:
    """Return a bound of ``minAllowed`` or ``maxAllowed``; None where there is none that can be read."""
    if amounts is None or resource not in amounts:
        return None
    try:
        return Quantity.parse(amounts[resource])
    except QuantityError:
        return None
