"""Amounts of resources that a machine can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.units.quantity import Quantity, quantity_error, whole

MOST_OF_ONE_NODE: Final = {"cpu": 1 << 16, "memory": 1 << 50}
"""Cores, and bytes (1 PiB): some thirty times the largest machine that can be rented (1,920 cores, 32 TiB)."""

_MOST_OF_ANYTHING: Final = 1 << 62


def amount_error(resource: str, value: str | float) -> str:
    """Return why no machine has this amount of a resource; empty where one may have it."""
    unreadable = quantity_error(value)
    if unreadable is not None:
        return unreadable
    sign = Quantity.parse(value).sign()
    if sign < 0:
        return "it is less than 0"
    if sign == 0 and resource in MOST_OF_ONE_NODE:
        return "every machine has some"
    if whole(value) > MOST_OF_ONE_NODE.get(resource, _MOST_OF_ANYTHING):
        return f"{value} is more than any machine has"
    return ""


def has_machine_amounts(amounts: Mapping[str, str | float]) -> bool:
    """Return whether a machine may have the CPU and memory among these amounts.

    A kubelet that cannot read its machine reports 0 of both.
    """
    return not any(name in amounts and amount_error(name, amounts[name]) for name in MOST_OF_ONE_NODE)
