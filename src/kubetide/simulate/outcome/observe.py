"""Observes a run and records its timeline: one entry per sampling step.

Counters follow the informers, so that a step costs the same whatever the size of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kubetide.embedded.cloud import GROUP_LABEL, EmbeddedCloud
from kubetide.embedded.cloud.catalogue import GPU_RESOURCE
from kubetide.embedded.load import ServiceLoad, ServiceResources, ServiceStep
from kubetide.objects.meta import Key
from kubetide.objects.node import Node, node_condition
from kubetide.objects.pod import Pod, PodSpec, is_finished, pod_condition
from kubetide.objects.workload import Deployment
from kubetide.ports.clock import Clock
from kubetide.scheduling import pod_requests
from kubetide.simulate.outcome.kills import Kills
from kubetide.simulate.outcome.timeline import NodeLife, ResourceTotals, ServiceSeries, Timeline
from kubetide.simulate.outcome.waits import PodWaits
from kubetide.units.quantity import milli
from kubetide.units.time import Instant, to_seconds
from kubetide.units.vectors import Float64Vector
from kubetide.watching import Informer

_RESOURCES = ("cpu", "memory", "pods", GPU_RESOURCE)
"""What is summed up of the pods on nodes; CPU has a column of its own."""
_NOTHING = (0,) * len(_RESOURCES)


class Observer:
    """Records ``timeline`` from the first step that ends after ``start``."""

    def __init__(
        self,
        *,
        start: Instant,
        clock: Clock,
        load: ServiceLoad,
        cloud: EmbeddedCloud,
        groups: Sequence[str],
        pods: Informer[Pod],
        nodes: Informer[Node],
        deployments: Informer[Deployment],
        on_sample: Callable[[Timeline], None] | None = None,
    ) -> None:
        names = [shown_name(service.namespace, service.name) for service in load.services]
        self.timeline = Timeline(
            start=Instant(start + load.step),
            step_s=to_seconds(load.step),
            services={name: ServiceSeries(name) for name in names},
            nodes={name: [] for name in groups},
            requested={name: [] for name in _RESOURCES[1:]},
        )
        self._start = start
        self._load = load
        self._keys = [(service.namespace, service.name) for service in load.services]
        every = [self.timeline.services[name] for name in names]
        self._totals = [one.resources for one in every]
        self._series = [
            [getattr(one, column) for one in every]
            for column in (
                "offered",
                "capacity",
                "asked",
                "queue",
                "latency",
                "existing",
                "ready",
                "violated",
                "violated_own_step",
                "desired",
            )
        ]
        self._columns: dict[str, tuple[Float64Vector, list[float]]] = {}
        self._cloud = cloud
        self._spent_before: float | None = None
        self._deployments = deployments
        self._on_sample = on_sample
        self._counts = _Counts(groups)
        self._lives = _NodeLives(self.timeline.node_lives, clock)
        self._waits = PodWaits(self.timeline, clock)
        for key, pod in pods.objects.items():
            self._counts.pod_changed(key, None, pod)
            self._waits.pod_changed(key, None, pod)
        for node_key, node in nodes.objects.items():
            self._counts.node_changed(node_key, None, node)
            self._lives.node_changed(node_key, None, node)
        self._kills = Kills(list(zip(load.services, every, strict=True)))
        pods.on_change(self._counts.pod_changed)
        pods.on_change(self._waits.pod_changed)
        pods.on_change(self._kills.pod_changed)
        nodes.on_change(self._counts.node_changed)
        nodes.on_change(self._lives.node_changed)
        load.on_step(self._sample)

    def begin(self) -> None:
        """Start the accounts: earlier costs and starts do not count."""
        self._spent_before = self._cloud.spent()
        self._cloud.forget_sizes()
        self._counts.starts = 0
        self._counts.disruptions.clear()
        self._lives.begin(self._start)
        self._waits.begin()

    def _sample(self, end: Instant, step: ServiceStep) -> None:
        if end <= self._start:
            return
        line, counts = self.timeline, self._counts
        # As lists, because an array gives its elements one by one slowly.
        existing = step.existing.tolist()
        columns = (
            _rounded(step.offered, 4),
            self._as_before("capacity", step.capacity),
            self._as_before("asked", step.asked),
            _rounded(step.queue, 2),
            _rounded(step.latency, 5),
            existing,
            step.ready.tolist(),
            step.violated.tolist(),
            step.violated_own_step.tolist(),
            [self._desired(key, pods) for key, pods in zip(self._keys, existing, strict=True)],
        )
        for series, column in zip(self._series, columns, strict=True):
            for values, value in zip(series, column, strict=True):
                values.append(value)
        if step.resources is not None:
            _add(self._totals, step.resources)
        line.pending.append(len(counts.pending))
        for group, ready in counts.ready_nodes.items():
            # A group that was created in the middle of the run had no nodes before.
            column = line.nodes.get(group)
            if column is None:
                column = line.nodes[group] = [0] * (len(line.pending) - 1)
            column.append(ready)
        cpu, *others = counts.requested
        line.cpu_requested.append(cpu / 1000)
        for amounts, amount in zip(line.requested.values(), others, strict=True):
            amounts.append(amount)
        line.cpu_used.append(round(self._load.cpu_used_milli / 1000, 3))
        line.cpu_allocatable.append(counts.allocatable_milli / 1000)
        line.cost.append(round(self._cloud.spent() - (self._spent_before or 0.0), 6))
        line.largest = self._cloud.largest_sizes()
        line.pod_starts, disruptions = counts.starts, counts.disruptions
        line.evictions = disruptions["EvictionByEvictionAPI"]
        line.preemptions = disruptions["PreemptionByScheduler"]
        line.taint_evictions = disruptions["DeletionByTaintManager"]
        if self._on_sample is not None:
            self._on_sample(line)

    def _desired(self, key: Key, existing: int) -> int:
        deployment = self._deployments.objects.get(key)
        desired = existing if deployment is None else deployment.spec.replicas
        return 1 if desired is None else desired

    def _as_before(self, name: str, column: Float64Vector) -> list[float]:
        """Return a column that follows from pods alone, rounded; where it is the very one of the last step as it was then."""
        before = self._columns.get(name)
        if before is None or before[0] is not column:
            before = self._columns[name] = column, _rounded(column, 4)
        return before[1]


def _rounded(column: Float64Vector, digits: int) -> list[float]:
    return [round(value, digits) if value else value for value in column.tolist()]


def shown_name(namespace: str, name: str) -> str:
    """Return the displayed name of a service: with the namespace unless it is the default one."""
    return name if namespace == "default" else f"{namespace}/{name}"


class _NodeLives:
    """Notes when nodes come and go."""

    def __init__(self, lives: list[NodeLife], clock: Clock) -> None:
        self._lives = lives
        self._clock = clock
        self._there: dict[Key, NodeLife] = {}

    def begin(self, start: Instant) -> None:
        """Let the nodes that are there have come before the start, also those that are seen only now."""
        for life in self._there.values():
            life.created = min(life.created, Instant(start - 1))

    def node_changed(self, key: Key, old: Node | None, new: Node | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._there.pop(key).deleted = self._clock.now()
            old = None
        if old is None and new is not None:
            group = (new.metadata.labels or {}).get(GROUP_LABEL, "")
            life = self._there[key] = NodeLife(new.metadata.name, group, self._clock.now())
            self._lives.append(life)


def _add(totals: Sequence[ResourceTotals], step: ServiceResources) -> None:
    """Add what each service asked for and used in a step."""
    columns = (
        step.demanded_cpu,
        step.withheld_cpu,
        step.requested_cpu,
        step.unused_cpu,
        step.requested_memory,
        step.unused_memory,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for total, row in zip(totals, rows, strict=True):
        demanded, withheld, requested, unused, requested_memory, unused_memory = row
        total.demanded_cpu += demanded
        total.withheld_cpu += withheld
        total.requested_cpu += requested
        total.unused_cpu += unused
        total.requested_memory += requested_memory
        total.unused_memory += unused_memory


class _Counts:
    """Counters of pods and nodes, moved by each change."""

    def __init__(self, groups: Sequence[str]) -> None:
        self.pending: dict[Key, None] = {}
        self.requested = [0] * len(_RESOURCES)
        """Of each resource, in base units."""
        self._requests: dict[Key, tuple[PodSpec, tuple[int, ...]]] = {}
        """Of the pods that count: what their spec asks for."""
        self.allocatable_milli = 0
        self.ready_nodes = dict.fromkeys(groups, 0)
        self.starts = 0
        self.disruptions: Counter[str] = Counter()
        """Pods that were made to go, by the reason of their condition."""

    def pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None:
            reason = _disruption(new)
            if reason and reason != _disruption(old):
                self.disruptions[reason] += 1
        if (
            old is not None
            and new is not None
            and old.spec.node_name == new.spec.node_name
            and old.status.phase == new.status.phase
            and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        ):
            self._count_start(old, new)
            return
        self._count_requests(key, new)
        if (
            new is not None
            and not new.spec.node_name
            and not is_finished(new)
            and not new.metadata.deletion_timestamp
        ):
            self.pending[key] = None
        else:
            self.pending.pop(key, None)
        self._count_start(old, new)

    def _count_requests(self, key: Key, pod: Pod | None) -> None:
        spec, before = self._requests.pop(key, (None, _NOTHING))
        amounts = _NOTHING
        if pod is not None and _counts(pod):
            amounts = before if pod.spec is spec else _amounts(pod)
            self._requests[key] = pod.spec, amounts
        if amounts is not before:
            for at, (more, less) in enumerate(zip(amounts, before, strict=True)):
                self.requested[at] += more - less

    def _count_start(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and _is_ready(new) and (old is None or not _is_ready(old)):
            self.starts += 1

    def node_changed(self, _key: Key, old: Node | None, new: Node | None) -> None:
        for node, sign in ((old, -1), (new, 1)):
            if node is None or not _is_node_ready(node):
                continue
            self.allocatable_milli += sign * milli(str((node.status.allocatable or {}).get("cpu", 0)))
            group = (node.metadata.labels or {}).get(GROUP_LABEL)
            if group is not None:
                self.ready_nodes[group] = self.ready_nodes.get(group, 0) + sign


def _amounts(pod: Pod) -> tuple[int, ...]:
    asked = {**pod_requests(pod), "pods": 1}
    return tuple(asked.get(name, 0) for name in _RESOURCES)


def _counts(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not is_finished(pod)


def _disruption(pod: Pod) -> str:
    """Return why the pod is made to go, as its condition DisruptionTarget says; empty if it is not."""
    condition = pod_condition(pod, "DisruptionTarget")
    return "" if condition is None or condition.status != "True" else condition.reason


def _is_ready(pod: Pod) -> bool:
    condition = pod_condition(pod, "Ready")
    return condition is not None and condition.status == "True"


def _is_node_ready(node: Node) -> bool:
    condition = node_condition(node, "Ready")
    return condition is not None and condition.status == "True"
