"""Label values of node kinds: their GPU, and the drivers of their devices.

Source: Cluster Autoscaler (July 2026). A driver that upstream does not know by name is shown as ``custom.driver``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import GPU_RESOURCES, NVIDIA_GPU

LABELS = ("dra_drivers", "gpu_name", "gpu_resource_name")
UNKNOWN = ("", "", "")
"""The labels' values of nodes without any of that."""

_NAMED = ("compute-domain.nvidia.com", "dra.net", "gpu.nvidia.com", "tpu.google.com")
_OTHER = "custom.driver"


def kind_of_group(state: State, group_id: str) -> tuple[str, str, str]:
    """Return the values of ``LABELS`` for nodes of a group, as far as its template is known."""
    seen = state.memory.templates.get(group_id)
    if seen is not None:
        return _kind(state, seen.node, seen.slices)
    group = state.groups.get(group_id)
    if group is None or group.template is None:
        return UNKNOWN
    return _kind(state, group.template.node, group.template.slices or ())


def kind_of_node(state: State, name: str) -> tuple[str, str, str]:
    """Return the values of ``LABELS`` for a node; empty ones for a deleted node."""
    node = state.nodes.get(name)
    return UNKNOWN if node is None else _kind(state, node, state.node_devices().local(name))


def _kind(state: State, node: Node, slices: Iterable[ResourceSlice]) -> tuple[str, str, str]:
    drivers = {one.spec.driver if one.spec.driver in _NAMED else _OTHER for one in slices}
    label, labels = state.settings.gpu_label, node.metadata.labels or {}
    name = resource = ""
    if label and label in labels:
        offered = node.status.allocatable or {}
        name = labels[label]
        resource = next((one for one in GPU_RESOURCES if one in offered), NVIDIA_GPU)
    return ",".join(sorted(drivers)), name, resource
