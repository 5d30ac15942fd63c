"""Node groups from kube-state-metrics: which nodes are alike, how many there were, and how long machines took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kubetide.experiments.capture.groups import lasting_taints
from kubetide.experiments.capture.prometheus.questions import INSTANCE_TYPE, NODE_LABELS, ZONE, label_name
from kubetide.experiments.capture.prometheus.reading import Facts, Floats
from kubetide.experiments.capture.prometheus.workloads import Owners, quantities
from kubetide.objects.meta import Key, ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.ports.cloud import NodeGroup
from kubetide.units.quantity import milli, whole

_GROUPED_BY = tuple(
    label for name, label in NODE_LABELS.items() if name not in (label_name(INSTANCE_TYPE), label_name(ZONE))
)
_GIB = 1 << 30
_LONGEST_WAIT_S = 900
"""A pod that waits for longer does not wait for its machine to boot; upstream's --max-node-provision-time."""


class Nodes(NamedTuple):
    """The nodes that there were.

    Attributes:
        by_name: Each as it was first.
        group: Of each node, by its name.
        labelled: Whether a label says what their groups are.
        shapeless: Names of nodes whose capacity no series shows; they are not in ``by_name``.
    """

    by_name: dict[str, Node]
    group: dict[str, str]
    labelled: bool
    shapeless: list[str]


def nodes_of(facts: Mapping[str, Facts], there: Iterable[str]) -> Nodes:
    """Return the nodes of those names, in groups by a platform's label, else by their type, else by what they are."""
    labels: dict[str, dict[str, str]] = {}
    for owner, *values in facts["node labels"]:
        pairs = zip(NODE_LABELS.values(), values, strict=True)
        labels.setdefault(owner, {}).update({label: value for label, value in pairs if value})
    taints: dict[str, list[Taint]] = {}
    for owner, key, value, effect in sorted(facts["node taint"]):
        taints.setdefault(owner, []).append(Taint(key=key, value=value, effect=effect))
    amounts = {name: _amounts(facts[f"node {name}"]) for name in ("capacity", "allocatable")}
    by_name: dict[str, Node] = {}
    shapeless = []
    for name in sorted(there):
        capacity = quantities(amounts["capacity"].get(name, {}))
        if not {"cpu", "memory"} <= capacity.keys():
            shapeless.append(name)
            continue
        node = Node(
            metadata=ObjectMeta(name=name, labels=labels.get(name) or None),
            spec=NodeSpec(taints=tuple(taints.get(name, ())) or None),
            status=NodeStatus(
                capacity=capacity,
                allocatable=quantities(amounts["allocatable"].get(name, {})) or capacity,
            ),
        )
        by_name[name] = node
    group = {name: _group(node) for name, node in by_name.items()}
    labelled = any(set(_GROUPED_BY) & labels.get(name, {}).keys() for name in by_name)
    return Nodes(by_name, group, labelled, shapeless)


def _amounts(facts: Facts) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for (node, resource), seen in facts.items():
        found.setdefault(node, {})[resource] = seen.first
    return found


def _group(node: Node) -> str:
    labels = node.metadata.labels or {}
    named = next((labels[key] for key in _GROUPED_BY if key in labels), "")
    if named:
        return named
    capacity = node.status.capacity or {}
    size = f"{milli(str(capacity['cpu'])) / 1000:g}cpu-{whole(str(capacity['memory'])) / _GIB:.0f}gi"
    marks = sorted(taint.key.rpartition("/")[2].lower() for taint in lasting_taints(node))
    return "-".join([labels.get(INSTANCE_TYPE) or size, *marks])


def groups_of_nodes(nodes: Nodes, presence: Mapping[str, Floats], covered: np.ndarray) -> list[NodeGroup]:
    """Return the groups; their bounds are the fewest and the most nodes that each had at a time.

    Args:
        presence: Of each node, at which times it was there: a number, else NaN.
        covered: At which times anything was.
    """
    sizes: dict[str, np.ndarray] = {}
    for name, group in nodes.group.items():
        there = ~np.isnan(presence[name])
        sizes[group] = sizes[group] + there if group in sizes else there.astype(np.int64)
    return [
        NodeGroup(
            id=group,
            min_size=int(size[covered].min()),
            max_size=int(size[covered].max()),
            target_size=int(size[covered][-1]),
        )
        for group, size in sorted(sizes.items())
    ]


def boots_by_orders(
    orders: Floats, times: Floats, created: Mapping[str, float], nodes: Nodes
) -> dict[str, list[float]]:
    """Return how long machines took, by group: orders and nodes are matched in the order of their coming.

    Args:
        orders: How many nodes had been asked for at each of the ``times`` (Unix seconds): a counter, NaN for gaps.
        created: Unix seconds of the nodes that came.
    """
    waiting = list(_orders(orders, times))
    boots: dict[str, list[float]] = {}
    for name, at in sorted(created.items(), key=lambda one: (one[1], one[0])):
        if waiting and waiting[0] <= at:
            boots.setdefault(nodes.group[name], []).append(at - waiting.pop(0))
    return boots


def _orders(orders: Floats, times: Floats) -> Iterator[float]:
    """Yield when each machine was ordered: no later than that."""
    before = 0.0 if np.isnan(orders[:1]).any() else None
    for count, at in zip(orders.tolist(), times.tolist(), strict=True):
        if math.isnan(count):
            continue
        if before is not None:
            # A counter that falls began anew.
            more = count - before if count >= before else count
            yield from [at] * round(more)
        before = count


def boots_by_pods(
    facts: Mapping[str, Facts], owners: Owners, created: Mapping[str, float], nodes: Nodes
) -> dict[str, list[float]]:
    """Return for how long the oldest pod of each new node had waited when the node came: no machine took longer."""
    pods: dict[Key, float] = {(row[0], row[1]): seen.first for row, seen in facts["pod created"].items()}
    oldest: dict[str, float] = {}
    for namespace, pod, node in facts["pod node"]:
        at = pods.get((namespace, pod))
        kind = owners.of.get((namespace, pod), ("",))[0]
        if node not in created or at is None or kind == "DaemonSet":
            continue
        if 0 <= created[node] - at <= _LONGEST_WAIT_S:
            oldest[node] = min(oldest.get(node, at), at)
    boots: dict[str, list[float]] = {}
    for node, at in sorted(oldest.items()):
        boots.setdefault(nodes.group[node], []).append(created[node] - at)
    return boots
