"""``--nodes``: a node group by name, with its bounds.

Source: cluster-autoscaler (Aug 2026), dynamic node group spec.
"""

from __future__ import annotations

from typing import NamedTuple

from kubetide.units.numbers import NumberError, parse_integer


class NodeSpecError(ValueError):
    """A group that ``--nodes`` cannot mean, or bounds that a group cannot have; the text is upstream's."""


class NodeSpec(NamedTuple):
    """A node group that was named, and how many nodes it may have."""

    name: str
    min_size: int
    max_size: int


def parse_node_spec(text: str, *, scale_to_zero: bool = True) -> NodeSpec:
    """Return the group that ``MIN:MAX:NAME`` says; NAME may hold colons. Raises NodeSpecError."""
    parts = text.split(":", 2)
    if len(parts) != 3:
        raise NodeSpecError(f"wrong nodes configuration: {text}")
    spec = NodeSpec(parts[2], _size(parts[0], "min"), _size(parts[1], "max"))
    check_node_spec(spec, scale_to_zero=scale_to_zero)
    return spec


def check_node_spec(spec: NodeSpec, *, scale_to_zero: bool = True) -> None:
    """Raise NodeSpecError when no group can have such bounds; ``scale_to_zero`` allows a minimum of 0."""
    least = 0 if scale_to_zero else 1
    if spec.min_size < least:
        raise NodeSpecError(f"invalid node group spec: min size must be >= {least}")
    if spec.max_size < spec.min_size:
        raise NodeSpecError("invalid node group spec: max size must be greater or equal to min size")
    if not spec.name:
        raise NodeSpecError("invalid node group spec: name must not be blank")


def _size(text: str, bound: str) -> int:
    try:
        return parse_integer(text)
    except NumberError as error:
        raise NodeSpecError(f"failed to set {bound} size: {text}, expected integer") from error
