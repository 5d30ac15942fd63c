"""Label values of node kinds: their GPU, and the drivers of their devices; and counters by these labels.

Source: Cluster Autoscaler (July 2026). A driver that upstream does not know by name is shown as ``custom.driver``. Not as
upstream: a type of GPU that it does not know by name (``not-listed`` there) is shown as the cloud's label says it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubetide.nodes.facts.nodes import has_gpu_devices
from kubetide.nodes.state import State
from kubetide.nodes.templates.learned import seen_template
from kubetide.objects.node import Node
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import GPU_RESOURCES, NVIDIA_GPU
from kubetide.scheduling import node_allocatable
from kubetide.units.exposition import Registry

PREFIX = "cluster_autoscaler_"
LABELS = ("dra_drivers", "gpu_name", "gpu_resource_name")
Kind = tuple[str, str, str]
"""The values of ``LABELS``."""
UNKNOWN: Final[Kind] = ("", "", "")
"""The labels' values of nodes without any of that."""

_NAMED = ("compute-domain.nvidia.com", "dra.net", "gpu.nvidia.com", "tpu.google.com")
_OTHER = "custom.driver"
_UNLABELLED, _MISSING, _UNEXPECTED = "generic", "missing-gpu", "unexpected-label"
"""Upstream's names of GPUs: of nodes without the cloud's label; labelled ones whose GPUs are to come; that have none."""
_DEVICES = "dra_gpu.nvidia.com"
"""Upstream's name of the resource where pods claim GPUs as devices."""


class KindCounter:
    """A counter by the kind of nodes, and upstream's older one of GPU nodes alone.

    The older ones are deprecated since 1.36. Upstream goes on counting them, and dashboards are built on them.
    """

    def __init__(self, registry: Registry, name: str, gpu_name: str, text: str, *others: str) -> None:
        self._all = registry.counter(f"{PREFIX}{name}", text, (*LABELS, *others))
        self._gpu = registry.counter(f"{PREFIX}{gpu_name}", f"{text} Of GPU nodes.", (*LABELS[1:], *others))

    def add(self, amount: int, kind: Kind, *others: str) -> None:
        """Count nodes of a kind; ``others`` are the values of further labels."""
        self._all.add(amount, *kind, *others)
        if kind[1]:
            self._gpu.add(amount, *kind[1:], *others)


def kind_of_group(state: State, group_id: str) -> Kind:
    """Return the values of ``LABELS`` for nodes of a group, as far as its template is known."""
    group = state.groups.get(group_id)
    seen = state.memory.templates.get(group_id) if group is None else seen_template(state, group)
    if seen is not None:
        return _kind(state, seen.node, seen.slices)
    if group is None or group.template is None:
        return UNKNOWN
    return _kind(state, group.template.node, group.template.slices or ())


def kind_of_node(state: State, name: str) -> Kind:
    """Return the values of ``LABELS`` for a node; empty ones for a deleted node."""
    node = state.nodes.get(name)
    if node is None:
        return UNKNOWN
    group = state.groups.get(state.group_of(name) or "")
    promised = None if group is None or group.template is None else group.template.node
    return _kind(state, node, state.node_devices().local(name), promised)


def _kind(state: State, node: Node, slices: Iterable[ResourceSlice], promised: Node | None = None) -> Kind:
    drivers = {one.spec.driver if one.spec.driver in _NAMED else _OTHER for one in slices}
    return ",".join(sorted(drivers)), *_gpu(state.settings.gpu_label, node, promised)


def _gpu(label: str, node: Node, promised: Node | None) -> tuple[str, str]:
    """Return the name of the node's GPU and its resource; empty texts for a node without any sign of one."""
    offered, labels = node_allocatable(node), node.metadata.labels or {}
    resource = next((one for one in GPU_RESOURCES if offered.get(one, 0) > 0), "")
    if not resource and not (label and label in labels):
        return "", ""
    if has_gpu_devices(node, label):
        return labels.get(label) or _UNLABELLED, _DEVICES
    resource = resource or NVIDIA_GPU
    capacity, name = node.status.capacity or {}, labels.get(label, "")
    if resource in capacity:
        return name or _UNLABELLED, resource
    is_promised = promised is not None and resource in (promised.status.capacity or {})
    return _MISSING if is_promised else _UNEXPECTED, resource
