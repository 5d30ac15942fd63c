"""Limits over the whole cluster: cores, memory, GPUs, nodes.

Source: ``--cores-total``, ``--memory-total`` (GiB), ``--gpu-total`` (by type of GPU), ``--max-nodes-total``. Used is the capacity of
all nodes, those on their way included, without virtual kubelets. An amount that no machine has counts
for none, or one such node would hold back all increases for as long as it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubetide.nodes.facts.nodes import GPU_RESOURCE, is_virtual_kubelet
from kubetide.nodes.settings import Range, Settings, parse_gpu_total, parse_range
from kubetide.objects.node import Node
from kubetide.units.quantity import whole

_GIB = 1 << 30

CLUSTER_WIDE_FLAGS = {"cpu": ("cores-total", 1), "memory": ("memory-total", _GIB)}
"""The flag of each resource that is limited over all nodes, and the flag's unit."""

MOST_OF_ONE_NODE: Final = {"cpu": 1 << 16, "memory": 1 << 50}
"""Cores, and bytes (1 PiB): some thirty times the largest machine that can be rented (1,920 cores, 32 TiB)."""


def limits_of(settings: Settings) -> dict[str, Range]:
    """Return the limits by resource: cpu in cores, memory in bytes, types of GPUs in numbers."""
    memory = parse_range(settings.memory_total, "memory-total")
    return {
        "cpu": parse_range(settings.cores_total, "cores-total"),
        "memory": Range(memory.minimum * _GIB, memory.maximum * _GIB),
        **dict(parse_gpu_total(text) for text in settings.gpu_total),
    }


def gpus_of(node: Node, gpu_label: str) -> dict[str, int]:
    """Return the node's GPUs by their type, which is the value of the provider's label; none without the label."""
    kind = (node.metadata.labels or {}).get(gpu_label) if gpu_label else None
    if kind is None or is_virtual_kubelet(node):
        return {}
    return {kind: whole((node.status.allocatable or {}).get(GPU_RESOURCE, 0))}


def capacity_of(node: Node, gpu_label: str = "") -> dict[str, int]:
    """Return what a node counts for: whole cores and bytes of its capacity, and its GPUs; nothing for a virtual kubelet."""
    if is_virtual_kubelet(node):
        return {"cpu": 0, "memory": 0}
    capacity = node.status.capacity or {}
    amounts = {name: whole(capacity[name]) if name in capacity else 0 for name in ("cpu", "memory")}
    return {**amounts, **gpus_of(node, gpu_label)}


def absurd_amounts(node: Node) -> dict[str, int]:
    """Return the amounts of a node's capacity that are more than any machine has, as ``capacity_of`` returns them."""
    return {name: amount for name, amount in capacity_of(node).items() if amount > MOST_OF_ONE_NODE[name]}


def used_by(node: Node, gpu_label: str = "") -> dict[str, int]:
    """Return what a node adds to the sums over the cluster: its capacity, of absurd amounts nothing."""
    return {**capacity_of(node, gpu_label), **dict.fromkeys(absurd_amounts(node), 0)}


class Headroom:
    """What may still be added before a limit is passed."""

    def __init__(self, settings: Settings, nodes: Iterable[Node]) -> None:
        limits = limits_of(settings)
        self._gpu_label = settings.gpu_label
        self.used = dict.fromkeys(limits, 0)
        for node in nodes:
            for name, amount in used_by(node, settings.gpu_label).items():
                if name in self.used:
                    self.used[name] += amount
        self.left = {name: limit.maximum - self.used[name] for name, limit in limits.items()}

    def exceeded_by(self, need: Mapping[str, int], count: int = 1) -> tuple[str, ...]:
        """Return the resources of which ``count`` nodes of this capacity would take too much, in name order."""
        return tuple(
            name for name in sorted(self.left) if need.get(name) and need[name] * count > self.left[name]
        )

    def cap(self, node: Node, count: int) -> int:
        """Return how many of ``count`` such nodes are within the limits; 0 or more."""
        need = capacity_of(node, self._gpu_label)
        for name in sorted(self.left):
            if need.get(name):
                count = min(count, self.left[name] // need[name])
        return max(count, 0)
