"""GPUs: which nodes have them, how many, and which pods ask for them."""

from __future__ import annotations

from tests.nodes.reference.snapshot import allocatable, requests
from tests.nodes.reference.world import Group, Json

from kubetide.units.quantity import whole

LABEL = "cloud.example.com/accelerator"
"""The label of the recording's cloud; its value is the type."""
RESOURCE = "nvidia.com/gpu"


def kind_of(node: Json) -> str | None:
    """Return the type that the label names; None without the label."""
    value = (node["metadata"].get("labels") or {}).get(LABEL)
    return None if value is None else str(value)


def has_accelerator(node: Json) -> bool:
    """Return whether the node has GPUs, or will have them: by its label, or by what it offers."""
    return kind_of(node) is not None or allocatable(node).get(RESOURCE, 0) != 0


def lacks_accelerator(node: Json) -> bool:
    """Return whether the label promises GPUs that the node does not offer, or not yet."""
    return kind_of(node) is not None and allocatable(node).get(RESOURCE, 0) == 0


def counted(node: Json, group: Group | None) -> dict[str, int]:
    """Return how many GPUs of which type a node counts for. While it does not offer any, its group's template tells.

    In no group it counts for none then; upstream would fail, and no group would be scaled up.
    """
    kind = kind_of(node)
    if kind is None:
        return {}
    count = allocatable(node).get(RESOURCE, 0)
    if count == 0 and group is not None and group.template is not None:
        count = whole((group.template["status"].get("capacity") or {}).get(RESOURCE, "0"))
    return {kind: count} if count > 0 else {}


def asks_for_accelerator(pod: Json) -> bool:
    return RESOURCE in requests(pod)
