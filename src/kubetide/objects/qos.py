"""How a pod is treated when its node runs short: its quality-of-service class.

Source: "Pod Quality of Service Classes" (v1.36); only cpu and memory count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kubetide.units.quantity import Quantity

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_COUNTED = ("cpu", "memory")


def qos_class(spec: Json) -> Literal["Guaranteed", "Burstable", "BestEffort"]:
    """Return the class of a valid pod spec with its defaults. Resources of the whole pod go before its containers'."""
    if spec.get("resources"):
        parts = [spec["resources"]]
    else:
        containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        parts = [container.get("resources") or {} for container in containers]
    if not any(_amounts(part, side) for part in parts for side in ("requests", "limits")):
        return "BestEffort"
    for part in parts:
        limits = _amounts(part, "limits")
        if len(limits) < len(_COUNTED) or limits != _amounts(part, "requests"):
            return "Burstable"
    return "Guaranteed"


def _amounts(resources: Json, side: str) -> dict[str, Quantity]:
    """Return what is said of the counted resources; nothing is the same as zero."""
    said = resources.get(side) or {}
    amounts = {name: Quantity.parse(str(said[name])) for name in _COUNTED if said.get(name) is not None}
    return {name: amount for name, amount in amounts.items() if not amount.is_zero()}
