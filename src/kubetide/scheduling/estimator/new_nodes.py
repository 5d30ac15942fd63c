"""The nodes that an estimate adds: columns of copies of one template."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.estimator.template import fresh_node
from kubetide.scheduling.filters.node_ports import collide
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import ColumnKey, PodClass, Port
from kubetide.scheduling.pods.resources import PODS
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.units.vectors import Int64Vector

_UNLIMITED = np.iinfo(np.int64).max


class NewNodes:
    """Copies of a template that differ only in their names and their pods.

    A class that reads names (by hostname or metadata.name) is evaluated node by node.
    """

    def __init__(self, template: Node, daemon_pods: Sequence[Pod], facts: ClusterFacts) -> None:
        self._template = template
        self._facts = facts
        self._fresh = fresh_node(template, daemon_pods, facts)
        self._base: dict[ColumnKey, int] = self._fresh.stock(template.metadata.name)
        self._free: dict[ColumnKey, Int64Vector] = {}
        # Ports by what may collide, with the nodes that they are used on: each pod may have one of its own.
        self._ports: dict[tuple[str, int], dict[Port, list[int]]] = {}
        for key in self._base:
            if isinstance(key, Port):
                self._used_on(key)
        self._used = np.zeros(0, np.bool_)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, in order of addition."""
        return tuple(map(self._name, range(self._count)))

    @property
    def last_is_empty(self) -> bool:
        """Whether the node added last has no pod yet; False without nodes."""
        return self._count > 0 and not self._used[self._count - 1]

    def capacity(self, pod_class: PodClass) -> Int64Vector:
        """Return how many pods of the class each node can still take."""
        return self._capacity(pod_class, 0)

    def add(self, pod_class: PodClass, count: int) -> Int64Vector:
        """Add nodes and return how many pods of the class fit on each."""
        before = self._count
        self._count += count
        if self._count > len(self._used):
            more = max(16, self._count)
            self._used = np.concatenate([self._used, np.zeros(more, np.bool_)])
            for key, column in self._free.items():
                self._free[key] = np.concatenate([column, np.zeros(more, np.int64)])
        for key, column in self._free.items():
            column[before : self._count] = self._base.get(key, 0)
        return self._capacity(pod_class, before)

    def take(self, pod_class: PodClass, taken: Int64Vector) -> None:
        """Place pods of the class on the nodes: ``taken`` has one number per node."""
        n = self._count
        for key, amount in pod_class.charges:
            if isinstance(key, Port):
                self._used_on(key).extend(np.flatnonzero(taken).tolist())
            else:
                self._column(key)[:n] -= amount * taken
        self._used[:n] |= taken > 0

    def _capacity(self, pod_class: PodClass, first: int) -> Int64Vector:
        n = self._count
        capacity = np.full(n - first, _UNLIMITED, np.int64)
        for key, amount in ((PODS, 1), *pod_class.requests.items()):
            if amount > 0:
                np.minimum(capacity, self._column(key)[first:n] // amount, out=capacity)
        np.maximum(capacity, 0, out=capacity)
        for port in pod_class.ports:
            # A claim excludes itself, so that one pod is the most.
            np.minimum(capacity, 1, out=capacity)
            for used, nodes in self._ports.get((port.protocol, port.port), {}).items():
                if not collide(port, used):
                    continue
                if self._base.get(used, 0) < 0:
                    capacity[:] = 0
                capacity[[node - first for node in nodes if node >= first]] = 0
        if pod_class.names_nodes:
            allowed = [self._passes_static(pod_class, position) for position in range(first, n)]
            capacity[~np.array(allowed, np.bool_)] = 0
        elif not self._fresh.static_part(pod_class)[0]:
            capacity[:] = 0
        return capacity

    def _passes_static(self, pod_class: PodClass, position: int) -> bool:
        name = self._name(position)
        labels = {**(self._template.metadata.labels or {}), HOSTNAME: name}
        metadata = replace(self._template.metadata, name=name, labels=labels)
        renamed = fresh_node(replace(self._template, metadata=metadata), (), self._facts)
        return bool(renamed.static_part(pod_class)[0])

    def _used_on(self, port: Port) -> list[int]:
        """The nodes on which pods that were put there use a port."""
        return self._ports.setdefault((port.protocol, port.port), {}).setdefault(port, [])

    def _column(self, key: ColumnKey) -> Int64Vector:
        column = self._free.get(key)
        if column is None:
            column = self._free[key] = np.full(len(self._used), self._base.get(key, 0), np.int64)
        return column

    def _name(self, position: int) -> str:
        return f"{self._template.metadata.name}-e-{position}"
