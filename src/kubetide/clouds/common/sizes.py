"""Rules that all clouds share for changing a group's size, with upstream's texts.

Source: cluster-autoscaler, ``IncreaseSize``, ``DecreaseTargetSize`` and ``DeleteNodes`` of its providers.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.clouds.common.node_spec import NodeSpec, NodeSpecError, parse_node_spec
from kubetide.ports.errors import CloudError


def parse_node_specs(texts: Iterable[str]) -> tuple[NodeSpec, ...]:
    """Return the groups of all ``--nodes``; a minimum may be 0. Raises CloudError."""
    try:
        return tuple(parse_node_spec(text) for text in texts)
    except NodeSpecError as error:
        raise CloudError(f"failed to parse node group spec: {error}") from error


def increased(target: int, delta: int, max_size: int) -> int:
    """Return the target after an increase by ``delta`` > 0. Raises CloudError beyond the maximum."""
    check_increase(delta)
    if target + delta > max_size:
        raise CloudError(f"size increase too large - desired:{target + delta} max:{max_size}")
    return target + delta


def check_increase(delta: int) -> None:
    """Raise CloudError unless ``delta`` is positive."""
    if delta <= 0:
        raise CloudError("size increase must be positive")


def check_decrease(delta: int, *, called: str = "size decrease") -> None:
    """Raise CloudError unless ``delta``, by how much the target falls, is positive; ``called`` is upstream's word for it."""
    if delta <= 0:
        raise CloudError(f"{called} must be negative")


def decreased(target: int, delta: int, existing: int) -> int:
    """Return the target after ``delta`` > 0 open orders are withdrawn. Raises CloudError where nodes exist."""
    check_decrease(delta)
    if target - delta < existing:
        raise CloudError(
            f"attempt to delete existing nodes targetSize:{target} delta:{-delta} existingNodes: {existing}"
        )
    return target - delta


def check_delete(target: int, min_size: int, count: int) -> None:
    """Raise CloudError where deleting ``count`` nodes would bring the target below the minimum.

    Upstream only asks whether the target is above the minimum; a batch is not allowed to pass it here.
    """
    if target <= min_size or target - count < min_size:
        raise CloudError(
            f"min size reached, nodes will not be deleted (size {target}, minimum {min_size}, to delete {count})"
        )


def doubts_of_maximum(own: int, max_size: int) -> tuple[str, ...]:
    """Return a warning where a group's own maximum is below that of ``--nodes``, which holds here; 0 is not known."""
    if not 0 < own < max_size:
        return ()
    doubt = (
        f"the cloud grows it to its own maximum size {own} only, which is below the {max_size} of --nodes; "
        "raise it, or lower that of --nodes"
    )
    return (doubt,)
