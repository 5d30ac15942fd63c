"""Unreadable parts of objects that are ignored instead of causing a verdict on a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubetide.objects.kinds import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.units.quantity import quantity_error

Found = tuple[Kind[Any], ObjectMeta, str]
"""A kind, an object of it, and what is wrong with that; empty for nothing."""


def unread_amounts(node: Node) -> Found:
    """Return the amounts of a node that cannot be read."""
    problems = [
        f"status.allocatable[{name}]: {problem}"
        for name, value in sorted((node.status.allocatable or {}).items())
        if (problem := quantity_error(value)) is not None
    ]
    said = ""
    if problems:
        said = f"{'; '.join(problems)}; it counts as none until a quantity such as 500m or 2Gi is reported"
    return NODES, node.metadata, said


def unread_devices(ledger: Ledger) -> Iterator[Found]:
    """Yield the slices that are left out, and the claims whose allocation is only partly known."""
    for one in ledger.given.slices:
        problem = ledger.unread.get(one.metadata.name)
        if problem is not None:
            said = f"its devices are left out: {problem}; the driver must publish quantities such as 2Gi"
            yield RESOURCE_SLICES, one.metadata, said
    for key, problem in ledger.unread_claims.items():
        said = f"part of what it has counts as none: status.allocation: {problem}"
        yield RESOURCE_CLAIMS, ledger.given.claims[key].metadata, said
