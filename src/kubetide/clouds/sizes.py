"""Rules that all clouds share for changing a group's size, with upstream's texts.

Source: cluster-autoscaler, ``IncreaseSize``, ``DecreaseTargetSize`` and ``DeleteNodes`` of its providers.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kubetide.clouds.go_numbers import go_int
from kubetide.ports.errors import CloudError

_SPEC = re.compile(r"([^:]*):([^:]*):(.*)", re.DOTALL)


class NodeSpec(NamedTuple):
    """One ``--nodes=MIN:MAX:NAME``."""

    min_size: int
    max_size: int
    name: str


def parse_node_spec(text: str, *, scale_to_zero: bool = True) -> NodeSpec:
    """Return the group that a ``--nodes`` value names; the name may hold colons. Raises CloudError."""
    failed = "failed to parse node group spec: "
    found = _SPEC.fullmatch(text)
    if found is None:
        raise CloudError(f"{failed}wrong nodes configuration: {text}")
    least, most = go_int(found[1]), go_int(found[2])
    if least is None:
        raise CloudError(f"{failed}failed to set min size: {found[1]}, expected integer")
    if most is None:
        raise CloudError(f"{failed}failed to set max size: {found[2]}, expected integer")
    invalid = f"{failed}invalid node group spec: "
    if least < (0 if scale_to_zero else 1):
        raise CloudError(f"{invalid}min size must be >= {0 if scale_to_zero else 1}")
    if most < least:
        raise CloudError(f"{invalid}max size must be greater or equal to min size")
    if not found[3]:
        raise CloudError(f"{invalid}name must not be blank")
    return NodeSpec(least, most, found[3])


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


def check_decrease(delta: int) -> None:
    """Raise CloudError unless ``delta``, by how much the target falls, is positive."""
    if delta <= 0:
        raise CloudError("size decrease must be negative")


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
