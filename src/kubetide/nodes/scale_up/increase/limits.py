"""Limits over the whole cluster: cores, memory, GPUs, nodes.

Source: ``--cores-total``, ``--memory-total`` (GiB), ``--gpu-total`` (by type of GPU), ``--max-nodes-total``. Used is the capacity of
all nodes, those on their way included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubetide.nodes.capacity.quotas import Quota
from kubetide.nodes.facts.node_capacity import amount_of, capacity_of, used_by
from kubetide.nodes.settings import Range, Settings, parse_gpu_total, parse_range
from kubetide.objects.node import Node

_GIB = 1 << 30

CLUSTER_WIDE_FLAGS = {"cpu": ("cores-total", 1), "memory": ("memory-total", _GIB)}
"""The flag of each resource that is limited over all nodes, and the flag's unit."""


def limits_of(settings: Settings) -> dict[str, Range]:
    """Return the limits by resource: cpu in cores, memory in bytes, GPU types in numbers."""
    memory = parse_range(settings.memory_total, "memory-total")
    return {
        "cpu": parse_range(settings.cores_total, "cores-total"),
        "memory": Range(memory.minimum * _GIB, memory.maximum * _GIB),
        **dict(parse_gpu_total(text) for text in settings.gpu_total),
    }


class Headroom:
    """What may still be added until a limit is reached."""

    def __init__(self, settings: Settings, nodes: Iterable[Node], quotas: Sequence[Quota] = ()) -> None:
        """Count the existing nodes.

        Args:
            settings: With the limits over the whole cluster.
            nodes: All nodes, those on their way included.
            quotas: CapacityQuotas; their limits have keys of their own in ``left``.
        """
        limits = limits_of(settings)
        self._gpu_label = settings.gpu_label
        self._quotas = tuple(quotas)
        self.used = dict.fromkeys(limits, 0)
        taken = {quota.key(name): limit for quota in quotas for name, limit in quota.limits.items()}
        for node in nodes:
            for name, amount in self._uses_of_quotas(node).items():
                taken[name] -= amount
            for name, amount in used_by(node, settings.gpu_label).items():
                if name in self.used:
                    self.used[name] += amount
        self.left = {**{name: limit.maximum - self.used[name] for name, limit in limits.items()}, **taken}
        self._cluster_wide = tuple(sorted(limits))

    def exceeded_by(self, need: Mapping[str, int], count: int = 1) -> tuple[str, ...]:
        """Return the resources whose limit ``count`` nodes of this capacity would exceed, in name order."""
        return tuple(
            name for name in self._cluster_wide if need.get(name) and need[name] * count > self.left[name]
        )

    def exceeded_quotas(self, node: Node, count: int = 1) -> list[tuple[str, tuple[str, ...]]]:
        """Return the quotas that ``count`` such nodes would exceed, each with the exceeded resources."""
        need = self._uses_of_quotas(node)
        found = []
        for quota in self._quotas:
            keys = {name: quota.key(name) for name in quota.resources}
            over = tuple(
                name for name, key in keys.items() if need[key] and need[key] * count > self.left[key]
            )
            if over:
                found.append((quota.id, over))
        return found

    def uses_of(self, node: Node) -> dict[str, int]:
        """Return how much such a node uses of every limit, by the keys of ``left``."""
        amounts = capacity_of(node, self._gpu_label)
        return {**{name: amounts.get(name, 0) for name in self._cluster_wide}, **self._uses_of_quotas(node)}

    def _uses_of_quotas(self, node: Node) -> dict[str, int]:
        return {
            quota.key(name): amount
            for quota in self._quotas
            for name, amount in quota.used_by(
                node, lambda name: amount_of(node, name, self._gpu_label)
            ).items()
        }

    def cap(self, node: Node, count: int) -> int:
        """Return how many of ``count`` such nodes are within the limits; 0 or more."""
        for name, need in sorted(self.uses_of(node).items()):
            if need:
                count = min(count, self.left[name] // need)
        return max(count, 0)

    def take(self, node: Node, count: int) -> None:
        """Count ``count`` such nodes as added."""
        for name, need in self.uses_of(node).items():
            self.left[name] -= need * count
