"""GPUs of a node: by the provider's label, else by what the node offers.

Source: cluster-autoscaler core (Jul 2026), GPU configuration of a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubetide.objects.base import Quantities
from kubetide.ports.cloud import GPU_RESOURCES, NVIDIA_GPU
from kubetide.units.quantity import milli

NVIDIA_TESLA: Final = (
    "nvidia-tesla-k80",
    "nvidia-tesla-p100",
    "nvidia-tesla-p4",
    "nvidia-tesla-t4",
    "nvidia-tesla-v100",
)
"""GPU types that more than one cloud names so."""


class NodeGpu(NamedTuple):
    """What GPU a node has: the label that says so, the label's value, and the resource that pods ask for."""

    label: str
    type: str
    resource: str


def gpu_of(
    labels: Mapping[str, str] | None, allocatable: Quantities | None, gpu_label: str
) -> NodeGpu | None:
    """Return the GPU of a node, None for a node without one. A label alone means ``nvidia.com/gpu``."""
    offered = allocatable or {}
    resource = next((name for name in GPU_RESOURCES if name in offered and milli(offered[name])), "")
    if gpu_label and gpu_label in (labels or {}):
        return NodeGpu(gpu_label, (labels or {})[gpu_label], resource or NVIDIA_GPU)
    return NodeGpu(gpu_label, "", resource) if resource else None
