"""The node loop's records as a run: workloads at the start, node groups, nodes over time, boot times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from kubetide.experiments.capture.ends import Ends, ready_after
from kubetide.experiments.capture.reading import Records
from kubetide.explain.records import Record
from kubetide.nodes.core import decode_delta
from kubetide.nodes.records.delta import Delta
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import ApiObject, Key, controller_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.ports.cloud import NodeGroup
from kubetide.simulate.outcome.marks import marks_of
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, parse_rfc3339

LOOP = "nodes"
_SECOND = 1_000_000_000

WORKLOADS = ("deployments", "stateful_sets", "daemon_sets", "pdbs", "namespaces")
"""Fields of a delta whose objects a scenario begins with."""
_FAILURES = {"IncreaseRefused", "FailedInstance", "UnregisteredRemoved"}
"""Codes of decisions about machines that could not be had: refused, failed, never joined."""
Times = dict[str, list[float]]
"""Seconds, by node group."""


class Count(NamedTuple):
    """The number of nodes at a tick."""

    at: Instant
    nodes: int


class Failures(NamedTuple):
    """How many decisions were about machines that could not be had, with the first and the last of them."""

    decisions: int
    first: Mark
    last: Mark


class Cluster(msgspec.Struct):
    """A run as the node loop saw it.

    Attributes:
        workloads: The objects that were there at the start, by field of ``WORKLOADS``.
        later: Names of those that came later, by field.
        scaled: Names of Deployments and StatefulSets whose replicas changed, with their first and last number.
        replicas: What those asked for, whenever it changed.
        groups: As they were last.
        at_start: Nodes of each group at the start, by name; ``""`` are those of no group.
        members: All nodes of each group, by name, where they are known by group.
        shapes: A node of each group, where there was one.
        counts: Nodes that there were, tick by tick.
        boots: Seconds from the order of a machine to its node, by group.
        readies: Seconds from a node to its being Ready, by group.
        shutdowns: Seconds from the deletion of a machine to the end of its node, by group.
        stops: Seconds from the deletion of a pod to its end.
        pods: Pods by themselves that were there at the start.
        failures: Machines that could not be had, by group.
        advised: Whether the loop said what it would do, and did nothing.
        loose: Other pods that no workload makes: of Jobs, of other owners, or by themselves and later.
    """

    settings: Settings
    workloads: dict[str, list[ApiObject]] = msgspec.field(default_factory=dict)
    later: dict[str, list[str]] = msgspec.field(default_factory=dict)
    scaled: dict[Key, tuple[int, int]] = msgspec.field(default_factory=dict)
    replicas: dict[Key, list[tuple[Instant, int]]] = msgspec.field(default_factory=dict)
    groups: list[NodeGroup] = msgspec.field(default_factory=list)
    at_start: dict[str, list[str]] = msgspec.field(default_factory=dict)
    members: dict[str, list[str]] = msgspec.field(default_factory=dict)
    shapes: dict[str, Node] = msgspec.field(default_factory=dict)
    counts: list[Count] = msgspec.field(default_factory=list)
    boots: Times = msgspec.field(default_factory=dict)
    readies: Times = msgspec.field(default_factory=dict)
    shutdowns: Times = msgspec.field(default_factory=dict)
    stops: list[float] = msgspec.field(default_factory=list)
    pods: list[Pod] = msgspec.field(default_factory=list)
    failures: dict[str, Failures] = msgspec.field(default_factory=dict)
    loose: int = 0
    advised: bool = False
    first: Instant = Instant(0)
    last: Instant = Instant(0)


class _Reading:
    """Where the reading is."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.known: dict[str, set[Key]] = {field: set() for field in WORKLOADS}
        self.seen: dict[str, Node] = {}
        self.ready: dict[str, Node] = {}
        """Each as it was when it was Ready first."""
        self.group_of: dict[str, str] = {}
        """By provider ID."""
        self.targets: dict[str, int] = {}
        self.orders: list[tuple[Instant, str, int]] = []
        """Machines that the loop ordered."""
        self.in_vain: list[tuple[Instant, str, int]] = []
        """Ordered machines that never became nodes, each with a time at or soon after its order."""
        self.listed: dict[str, Instant] = {}
        """When the cloud listed an instance first, by provider ID."""
        self.growths: list[tuple[Instant, str, int]] = []
        """Growth of the groups' sizes, whoever asked for it."""
        self.alone: set[Key] = set()
        """Pods by themselves that were there at the start."""
        self.loose: set[Key] = set()
        self.ends = Ends()


def read_cluster(records: Records) -> Cluster:
    """Read the node loop's records of a run, to their end. Raises RecordError."""
    found = Cluster(Settings())
    reading = _Reading()
    for record in records(LOOP):
        delta = decode_delta(record.state)
        if record.full:
            reading.nodes.clear()
        _take_nodes(reading, delta)
        _take_groups(reading, found, delta, record.now)
        _take_workloads(reading, found, delta, record.now, at_start=not found.first)
        if not found.first:
            found.first = record.now
            found.settings = delta.settings or found.settings
            starting = dict(reading.nodes)
        # What has ended was there at the tick before: on average it ended in the middle between.
        between = Instant((record.now + (found.last or record.now)) // 2)
        found.stops += reading.ends.pods(delta, between)
        for gone, lasted in reading.ends.nodes(delta, between):
            found.shutdowns.setdefault(_group(reading, reading.seen[gone]), []).append(lasted)
        found.last = record.now
        if record.phase == 0:
            found.counts.append(Count(record.now, len(reading.nodes)))
        for mark in marks_of(record):
            found.advised |= mark.fruitless
            reading.ends.take(mark)
            if mark.code in _FAILURES:
                before = found.failures.get(mark.subject, Failures(0, mark, mark))
                found.failures[mark.subject] = Failures(before.decisions + 1, before.first, mark)
            if mark.change > 0 and not mark.fruitless:
                reading.orders.append((mark.at, mark.subject, mark.change))
        reading.in_vain += _in_vain(reading, record)
    if not found.first:
        return found
    for name, node in starting.items():
        found.at_start.setdefault(_group(reading, node), []).append(name)
    for node in reading.seen.values():
        found.shapes.setdefault(_group(reading, node), node)
    found.advised &= not reading.orders
    found.boots = _boots(reading, set(starting))
    for name, node in reading.ready.items():
        took = ready_after(node)
        if name not in starting and took is not None:
            found.readies.setdefault(_group(reading, node), []).append(took)
    found.loose = len(reading.loose)
    return found


def _take_nodes(reading: _Reading, delta: Delta) -> None:
    for node in delta.nodes:
        reading.nodes[node.metadata.name] = node
        reading.seen.setdefault(node.metadata.name, node)
        if node.metadata.name not in reading.ready and ready_after(node) is not None:
            reading.ready[node.metadata.name] = node
    for name in delta.gone.nodes:
        reading.nodes.pop(name, None)


def _take_groups(reading: _Reading, found: Cluster, delta: Delta, now: Instant) -> None:
    if delta.groups is None:
        return
    found.groups = [group for group in delta.groups if group.exists]
    for group in found.groups:
        for instance in group.instances or ():
            reading.group_of[instance.provider_id] = group.id
            reading.listed.setdefault(instance.provider_id, now)
        before = reading.targets.get(group.id, group.target_size)
        # A cloud that knows nodes only (by their labels) grows with them: that tells nothing of an order.
        there = sum(_group(reading, node) == group.id for node in reading.nodes.values())
        coming = min(group.target_size - before, group.target_size - there)
        if coming > 0:
            reading.growths.append((now, group.id, coming))
        reading.targets[group.id] = group.target_size


def _take_workloads(reading: _Reading, found: Cluster, delta: Delta, at: Instant, *, at_start: bool) -> None:
    for field in WORKLOADS:
        for item in _objects(delta, field):
            key = (item.metadata.namespace, item.metadata.name)
            _count_replicas(found, field, key, item, at)
            if key in reading.known[field]:
                continue
            reading.known[field].add(key)
            if at_start:
                found.workloads.setdefault(field, []).append(item)
            else:
                found.later.setdefault(field, []).append("/".join(filter(None, key)))
    for pod in delta.pods:
        owner = controller_of(pod.metadata)
        if owner is None and at_start and not is_finished(pod):
            found.pods.append(pod)
            reading.alone.add((pod.metadata.namespace, pod.metadata.name))
        elif (pod.metadata.namespace, pod.metadata.name) in reading.alone:
            continue
        elif owner is None or owner.kind not in ("ReplicaSet", "StatefulSet", "DaemonSet", "Node"):
            reading.loose.add((pod.metadata.namespace, pod.metadata.name))


def _objects(delta: Delta, field: str) -> Iterable[ApiObject]:
    objects: Iterable[ApiObject] = getattr(delta, field)
    return objects


def _count_replicas(found: Cluster, field: str, key: Key, item: Any, at: Instant) -> None:
    if field in ("deployments", "stateful_sets"):
        now = item.spec.replicas if item.spec.replicas is not None else 1
        found.scaled[key] = found.scaled.get(key, (now, now))[0], now
        history = found.replicas.setdefault(key, [])
        if not history or history[-1][1] != now:
            history.append((at, now))


def _group(reading: _Reading, node: Node) -> str:
    return reading.group_of.get(node.spec.provider_id or "", "")


def _in_vain(reading: _Reading, record: Record) -> Iterator[tuple[Instant, str, int]]:
    """Yield the machines of which a record says that they could not be made or never joined."""
    for reason in record.reasons:
        if reason.code == "FailedInstance":
            yield record.now, reason.subject, int(str(reason.fields["instances"]))
        elif reason.code == "UnregisteredRemoved":
            yield reading.listed.get(str(reason.fields["instance"]), record.now), reason.subject, 1


def _boots(reading: _Reading, starting: set[str]) -> Times:
    """Return how long machines took, by group: orders and new nodes are matched in the order of their coming.

    An order of which no node came is matched with none: the next node would count as very slow.
    """
    waiting: dict[str, list[Instant]] = {}
    for at, group, count in reading.orders or reading.growths:
        waiting.setdefault(group, []).extend([at] * count)
    for at, group, count in reading.in_vain:
        queue = waiting.get(group, [])
        until = bisect_right(queue, at)
        del queue[max(until - count, 0) : until]
    boots: Times = {}
    for created, group in sorted(_arrivals(reading, starting)):
        queue = waiting.get(group, [])
        # Objects say whole seconds; on average they were created half a second later.
        if queue and queue[0] <= created + _SECOND:
            boots.setdefault(group, []).append(max((created + _SECOND // 2 - queue.pop(0)) / 1e9, 0.0))
    return boots


def _arrivals(reading: _Reading, starting: set[str]) -> Iterator[tuple[Instant, str]]:
    for name, node in reading.seen.items():
        if name not in starting and node.metadata.creation_timestamp:
            yield parse_rfc3339(node.metadata.creation_timestamp), _group(reading, node)
