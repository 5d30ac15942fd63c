"""The LimitRange objects of a namespace, merged: the strictest bounds hold.

Source: vertical-pod-autoscaler 1.8.1, pkg/utils/limitrange.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kubetide.objects.limit_range import LimitRange, LimitRangeItem
from kubetide.vertical.resources.amounts import Amounts, read_amounts

CONTAINER: Final = "Container"
POD: Final = "Pod"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one type: the lowest ``max``, the highest ``min``, the last ``default`` limit."""

    min: Amounts = field(default_factory=dict)
    max: Amounts = field(default_factory=dict)
    default: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamespaceBounds:
    """Bounds of each container and of each pod; None where no LimitRange has any."""

    container: Bounds | None = None
    pod: Bounds | None = None


NO_BOUNDS: Final = NamespaceBounds()


def merged(ranges: Iterable[LimitRange]) -> NamespaceBounds:
    """Return the bounds that all LimitRange objects of one namespace make. Raises: QuantityError."""
    items = [item for one in ranges for item in one.spec.limits or ()]
    return NamespaceBounds(_merged(items, CONTAINER), _merged(items, POD))


def _merged(items: Iterable[LimitRangeItem], kind: str) -> Bounds | None:
    found = [
        item
        for item in items
        if item.type == kind and any(bound is not None for bound in (item.min, item.max, item.default))
    ]
    if not found:
        return None
    lowest: Amounts = {}
    highest: Amounts = {}
    default: Amounts = {}
    for item in found:
        for name, amount in read_amounts(item.max).items():
            lowest[name] = min(lowest.get(name, amount), amount)
        for name, amount in read_amounts(item.min).items():
            highest[name] = max(highest.get(name, amount), amount)
        default = read_amounts(item.default) if item.default is not None else default
    return Bounds(min=highest, max=lowest, default=default)
