"""Pods as columns: one row per pod, updated by pod and node changes.

A row is taken by a pod for its life and given to another one after it; ``version`` moves when the
rows that a metrics reader sees may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.embedded.load.service import Needs, Service
from kubetide.objects.base import Quantities
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Container, Pod, acting_containers, is_finished, pod_condition
from kubetide.units.quantity import milli, whole
from kubetide.units.time import Instant, parse_rfc3339

NO_NODE = 0
"""Node number of a pod whose node is not known: it has no capacity there."""

_FIRST_ROWS = 64
_MOST_LABELS = 4096
"""Different sets of labels whose service is cached: those of StatefulSets' pods are each their own."""
_NEVER = np.iinfo(np.int64).max
_MOST: Final = {"cpu": 1 << 42, "memory": 1 << 53}
"""Milli-CPU and bytes that all sums here hold as whole numbers; a quantity may be far larger, and no machine has so much."""


class Shape(msgspec.Struct, frozen=True):
    """What of a pod does not change with its status.

    Attributes:
        service: Number of its service; the number of services when it has none.
        containers: Names, in the order of the spec.
        worker: The container that does the service's work; -1 for a pod without containers.
        request, limit: Milli-CPU of the worker; ``limit`` inf without one.
        memory_request, memory_limit: Bytes of the worker; ``memory_limit`` inf without one.
        base_cpu: Milli-CPU of the worker without requests.
        base_memory: Bytes of the worker without requests.
        leak: Bytes a second by which the worker's memory grows.
        side_cpu: Milli-CPU of the other containers.
        nano, memory: What each container uses when it does no work (nano-CPU, bytes); the
            worker's own entries stand for a pod without a service.
    """

    service: int
    containers: tuple[str, ...]
    worker: int
    request: float
    limit: float
    memory_request: float
    memory_limit: float
    base_cpu: float
    base_memory: float
    leak: float
    side_cpu: float
    nano: tuple[int, ...]
    memory: tuple[int, ...]


class _Facts(msgspec.Struct, frozen=True):
    """What of a pod changes with its status."""

    node: str
    started_ns: int
    running: bool
    exists: bool
    serving: bool


class PodRows:
    """The columns. ``n`` rows are in use or free; a free row is not running, serves and uses nothing."""

    def __init__(self, services: Sequence[Service], idle_share: float) -> None:
        self._services = services
        self._idle_share = idle_share
        self.n = 0
        self.version = 0
        self.changes = 0
        """Counts all changes of pods and nodes."""
        self._row_of: dict[Key, int] = {}
        self._free: list[int] = []
        self._node_number: dict[str, int] = {}
        self._service_by_labels: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        """One tuple of container names for all pods that have these."""
        self.node_cpu = np.zeros(1)
        """(nodes + 1,) milli-CPU; 0 of the unknown node and of nodes that are gone."""
        self.node_down = np.ones(1, np.bool_)
        """(nodes + 1,) whether a node is gone or not Ready: its pods serve nobody."""
        self._allocate(_FIRST_ROWS)

    def _allocate(self, size: int) -> None:
        dummy = len(self._services)

        def grown(name: str, dtype: Any, fill: Any) -> None:
            column = np.full(size, fill, dtype)
            old = getattr(self, name, None)
            if old is not None:
                column[: len(old)] = old
            setattr(self, name, column)

        self.service: NDArray[np.int64]
        self.node: NDArray[np.int64]
        self.started_ns: NDArray[np.int64]
        self.exists: NDArray[np.bool_]
        self.running: NDArray[np.bool_]
        self.serving: NDArray[np.bool_]
        self.base_cpu: NDArray[np.float64]
        self.request: NDArray[np.float64]
        self.limit: NDArray[np.float64]
        self.base_memory: NDArray[np.float64]
        self.leak: NDArray[np.float64]
        self.startup: NDArray[np.float64]
        self.memory_request: NDArray[np.float64]
        self.memory_limit: NDArray[np.float64]
        self.side_cpu: NDArray[np.float64]
        self.pods: NDArray[np.object_]
        self.shapes: NDArray[np.object_]
        self.names: NDArray[np.object_]
        self.namespaces: NDArray[np.object_]
        self.node_names: NDArray[np.object_]
        self.containers: NDArray[np.object_]
        self._facts: NDArray[np.object_]
        self.container_count: NDArray[np.int64]
        self.worker: NDArray[np.int64]
        grown("service", np.int64, dummy)
        grown("node", np.int64, NO_NODE)
        grown("started_ns", np.int64, _NEVER)
        grown("exists", np.bool_, False)
        grown("running", np.bool_, False)
        grown("serving", np.bool_, False)
        grown("base_cpu", np.float64, 0.0)
        grown("request", np.float64, 0.0)
        grown("limit", np.float64, np.inf)
        grown("base_memory", np.float64, 0.0)
        grown("leak", np.float64, 0.0)
        grown("startup", np.float64, 0.0)
        grown("memory_request", np.float64, 0.0)
        grown("memory_limit", np.float64, np.inf)
        grown("side_cpu", np.float64, 0.0)
        for name in ("pods", "shapes", "names", "namespaces", "node_names", "containers", "_facts"):
            grown(name, np.object_, None)
        grown("container_count", np.int64, 0)
        grown("worker", np.int64, -1)

    def set_pod(self, key: Key, pod: Pod) -> None:
        """Take in a pod or its change."""
        row = self._row_of.get(key)
        if row is None:
            row = self._new_row(key)
        old: Pod | None = self.pods[row]
        shape: Shape | None = self.shapes[row]
        self.pods[row] = pod
        if (
            shape is None
            or old is None
            or old.metadata.labels != pod.metadata.labels
            or acting_containers(old) != acting_containers(pod)
        ):
            shape = self._shape(key, pod)
            self._put_shape(row, key, shape)
        facts = _facts_of(pod, shape)
        if facts == self._facts[row]:
            return
        self.changes += 1
        self._facts[row] = facts
        running, started = facts.running, facts.started_ns
        if started != self.started_ns[row] and running and shape.service < len(self._services):
            self.startup[row] = self._services[shape.service].startup_cpu_seconds * 1000.0
        if running != self.running[row] or started != self.started_ns[row]:
            self.version += 1
        self.node_names[row] = facts.node
        self.node[row] = self._number(facts.node)
        self.started_ns[row] = started
        self.running[row] = running
        self.exists[row] = facts.exists
        self.serving[row] = facts.serving
        self.base_cpu[row] = shape.base_cpu if running else 0.0
        self.side_cpu[row] = shape.side_cpu if running else 0.0
        self.base_memory[row] = shape.base_memory if running else 0.0

    def _put_shape(self, row: int, key: Key, shape: Shape) -> None:
        self.version += 1
        self._facts[row] = None
        self.shapes[row] = shape
        self.service[row] = shape.service
        self.request[row] = shape.request
        self.limit[row] = shape.limit
        self.memory_request[row] = shape.memory_request
        self.memory_limit[row] = shape.memory_limit
        self.leak[row] = shape.leak
        self.namespaces[row], self.names[row] = key
        self.containers[row] = shape.containers
        self.container_count[row] = len(shape.containers)
        self.worker[row] = shape.worker

    def remove_pod(self, key: Key) -> None:
        """Free the pod's row."""
        self.changes += 1
        row = self._row_of.pop(key, None)
        if row is None:
            return
        self._free.append(row)
        self.version += 1
        self.pods[row] = None
        self.shapes[row] = None
        self._facts[row] = None
        self.service[row] = len(self._services)
        self.node[row] = NO_NODE
        self.started_ns[row] = _NEVER
        self.exists[row] = self.running[row] = self.serving[row] = False
        self.base_cpu[row] = self.side_cpu[row] = self.request[row] = self.base_memory[row] = 0.0
        self.leak[row] = self.startup[row] = self.memory_request[row] = 0.0
        self.limit[row] = self.memory_limit[row] = np.inf

    def set_node(self, node: Node) -> None:
        """Take in a node or its change."""
        number = self._number(node.metadata.name)
        capacity = node.status.allocatable or node.status.capacity or {}
        cpu, down = float(_resource(capacity, "cpu", milli) or 0), not _is_ready(node)
        # Most of what a node reports is that it is still there.
        if (cpu, down) != (self.node_cpu[number], self.node_down[number]):
            self.changes += 1
            self.node_cpu[number], self.node_down[number] = cpu, down

    def remove_node(self, name: str) -> None:
        """Take a node out; pods that still say they are on it serve nobody."""
        self.changes += 1
        number = self._number(name)
        self.node_cpu[number] = 0.0
        self.node_down[number] = True

    def visible(self, step_start: Instant) -> tuple[NDArray[np.int64], bool]:
        """Rows of Running pods with containers that had started by then, and whether any is still too young."""
        n = self.n
        running = self.running[:n] & (self.container_count[:n] > 0)
        old_enough = running & (self.started_ns[:n] <= step_start)
        return np.flatnonzero(old_enough), bool((running & ~old_enough).any())

    def _new_row(self, key: Key) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = self.n
            if row == len(self.service):
                self._allocate(2 * row)
            self.n += 1
        self._row_of[key] = row
        return row

    def _number(self, node: str) -> int:
        if not node:
            return NO_NODE
        number = self._node_number.get(node)
        if number is None:
            number = self._node_number[node] = len(self.node_cpu)
            self.node_cpu = np.append(self.node_cpu, 0.0)
            self.node_down = np.append(self.node_down, True)
        return number

    def _shape(self, key: Key, pod: Pod) -> Shape:
        service = self._service_of(key[0], pod)
        containers = acting_containers(pod) or ()
        worker = self._worker(service, containers)
        # A container without work of its own uses a constant share of what it asks for.
        nano = tuple(
            round(self._idle_share * (_resource(c.resources.requests, "cpu", milli) or 0) * 1_000_000)
            for c in containers
        )
        memory = tuple(
            round(self._idle_share * (_resource(c.resources.requests, "memory", whole) or 0))
            for c in containers
        )
        side_cpu = sum(value for number, value in enumerate(nano) if number != worker) / 1e6
        if worker < 0:
            return Shape(
                service=service, containers=(), worker=worker, request=0.0, limit=np.inf, memory_request=0.0,
                memory_limit=np.inf, base_cpu=0.0, base_memory=0.0, leak=0.0, side_cpu=0.0, nano=(), memory=(),
            )  # fmt: skip
        resources = containers[worker].resources
        limit = _resource(resources.limits, "cpu", milli)
        memory_limit = _resource(resources.limits, "memory", whole)
        served = self._services[service] if service < len(self._services) else None
        needs = Needs(memory[worker], 0) if served is None else served.needs(containers[worker].image)
        names = tuple(c.name for c in containers)
        return Shape(
            service=service,
            containers=self._names.setdefault(names, names),
            worker=worker,
            request=float(_resource(resources.requests, "cpu", milli) or 0),
            limit=np.inf if limit is None else float(limit),
            memory_request=float(_resource(resources.requests, "memory", whole) or 0),
            memory_limit=np.inf if memory_limit is None else float(memory_limit),
            base_cpu=nano[worker] / 1e6 if served is None else served.base_cpu_milli,
            base_memory=float(needs.base_memory_bytes),
            leak=needs.leak_bytes_per_hour / 3600.0,
            side_cpu=side_cpu,
            nano=nano,
            memory=memory,
        )

    def _service_of(self, namespace: str, pod: Pod) -> int:
        labels = pod.metadata.labels or {}
        known = namespace, frozenset(labels.items())
        found = self._service_by_labels.get(known)
        if found is None:
            if len(self._service_by_labels) >= _MOST_LABELS:
                self._service_by_labels.clear()
            found = self._service_by_labels[known] = self._first_that_selects(namespace, labels)
        return found

    def _first_that_selects(self, namespace: str, labels: dict[str, str]) -> int:
        for number, service in enumerate(self._services):
            if service.namespace == namespace and service.selector.matches(labels):
                return number
        return len(self._services)

    def _worker(self, service: int, containers: Sequence[Container]) -> int:
        name = self._services[service].container if service < len(self._services) else ""
        for number, container in enumerate(containers):
            if container.name == name:
                return number
        return 0 if containers else -1


def _facts_of(pod: Pod, shape: Shape) -> _Facts:
    at = pod.status.start_time
    running = pod.status.phase == "Running"
    if running and shape.worker >= 0:
        running, at = _worker_runs(pod, shape.containers[shape.worker])
    started = parse_rfc3339(at) if running and at else None
    deleting = pod.metadata.deletion_timestamp is not None
    ready = pod_condition(pod, "Ready")
    return _Facts(
        node=pod.spec.node_name,
        started_ns=_NEVER if started is None else max(-_NEVER, min(started, _NEVER)),
        running=running,
        exists=not is_finished(pod) and not deleting,
        serving=running and not deleting and ready is not None and ready.status == "True",
    )


def _worker_runs(pod: Pod, worker: str) -> tuple[bool, str | None]:
    """Return whether the working container runs, and since when; a pod whose status does not say runs since its start."""
    for status in pod.status.container_statuses or ():
        if status.name == worker and status.state is not None:
            if status.state.running is not None:
                return True, status.state.running.started_at or pod.status.start_time
            return False, None
    return True, pod.status.start_time


def _is_ready(node: Node) -> bool:
    # A node that says nothing about itself is taken to be well: clusters without kubelets have such.
    return all(c.status == "True" for c in node.status.conditions or () if c.type == "Ready")


def _resource(quantities: Quantities | None, name: str, read: Callable[[str | float], int]) -> int | None:
    """Return an amount within what can be counted with; None where none is stated."""
    value = None if quantities is None else quantities.get(name)
    return None if value is None else max(0, min(read(value), _MOST[name]))
