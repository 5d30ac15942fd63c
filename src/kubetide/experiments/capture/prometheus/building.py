"""What Prometheus knows, as the cluster and the services of a capture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kubetide.experiments.capture.cluster import Cluster, Count
from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.groups import lasting_taints
from kubetide.experiments.capture.prometheus.hpas import hpas_of
from kubetide.experiments.capture.prometheus.nodes import (
    Nodes,
    boots_by_orders,
    boots_by_pods,
    groups_of_nodes,
    nodes_of,
)
from kubetide.experiments.capture.prometheus.reading import Facts, Floats, Grid
from kubetide.experiments.capture.prometheus.workloads import (
    FIELDS,
    Owners,
    changed,
    namespaces_of,
    shapes_of,
    tolerations_of,
    workload_object,
)
from kubetide.experiments.capture.services import HpaHistory, Services, Workload
from kubetide.experiments.capture.ticks import Tick
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.units.time import Duration, Instant

_SHOWN = 5


class Notes(NamedTuple):
    """What is to know of a run: always, and where no records tell it better."""

    always: list[str]
    alone: list[str]


class Numbers(NamedTuple):
    """All answers, on one grid of times.

    Attributes:
        covered: At which times anything is known.
        window: Over which CPU usage is a mean; it is that of pods that were Ready in its middle.
        nodes: By name; a number at the times that the node was there.
        replicas, ready: What each workload asked for, and its pods that were Ready; NaN where nothing tells.
        used, measured: Cores of its pods together, and how many of them were measured.
        orders: Machines that had been ordered since some time: a counter, NaN where nothing tells.
    """

    grid: Grid
    covered: np.ndarray
    window: Duration
    facts: Mapping[str, Facts]
    owners: Owners
    nodes: Mapping[str, Floats]
    replicas: Mapping[Workload, Floats]
    ready: Mapping[Workload, Floats]
    used: Mapping[Workload, Floats]
    measured: Mapping[Workload, Floats]
    orders: Floats

    @property
    def first(self) -> int:
        """The first time at which anything is known."""
        return int(np.flatnonzero(self.covered)[0])


def cluster_of(numbers: Numbers, notes: Notes) -> Cluster:
    """Return workloads, nodes and node groups; what cannot be known goes into ``notes``.

    Raises: CaptureError where no series tells what any node is.
    """
    grid, at = numbers.grid, np.flatnonzero(numbers.covered)
    nodes = nodes_of(numbers.facts, numbers.nodes)
    if not nodes.by_name:
        raise CaptureError(
            "Prometheus has no kube_node_status_capacity of any node, so that nothing tells what machines are: does "
            "kube-state-metrics drop it (--metric-denylist)?"
        )
    if nodes.shapeless:
        notes.always.append(
            f"{len(nodes.shapeless)} nodes have no kube_node_status_capacity and are left out: {_some(nodes.shapeless)}."
        )
    notes.alone.append(
        "Node groups are those that labels of nodes name."
        if nodes.labelled
        else "Node groups: no label tells them (kube-state-metrics with --metric-labels-allowlist=nodes=[...]); nodes of one "
        "type and the same taints are taken for a group."
    )
    total = np.zeros(grid.size, np.int64)
    for name in nodes.by_name:
        total += ~np.isnan(numbers.nodes[name])
    cluster = Cluster(
        NodesSettings(),
        groups=groups_of_nodes(nodes, numbers.nodes, numbers.covered),
        counts=[Count(grid.at(int(index)), int(total[index])) for index in at] if nodes.by_name else [],
        first=grid.at(int(at[0])),
        last=grid.at(int(at[-1])),
    )
    for name, node in nodes.by_name.items():
        cluster.shapes.setdefault(nodes.group[name], node)
        cluster.members.setdefault(nodes.group[name], []).append(name)
        if not math.isnan(numbers.nodes[name][at[0]]):
            cluster.at_start.setdefault(nodes.group[name], []).append(name)
    notes.alone.extend(
        f"Node group {group.id}: its bounds are the fewest and the most nodes that it had, {group.min_size} and "
        f"{group.max_size}; set group/{group.id}.max where it may have more."
        for group in cluster.groups
        if group.min_size < group.max_size
    )
    cluster.boots = _boots(numbers, nodes, cluster.first, notes)
    _add_workloads(cluster, numbers, nodes, notes)
    return cluster


def _boots(numbers: Numbers, nodes: Nodes, first: Instant, notes: Notes) -> dict[str, list[float]]:
    created = {
        row[0]: seen.first
        for row, seen in numbers.facts["node created"].items()
        if row[0] in nodes.by_name and seen.first * 1e9 > first
    }
    if not created:
        return {}
    if not np.isnan(numbers.orders).all():
        times = np.array([numbers.grid.at(index) / 1e9 for index in range(numbers.grid.size)])
        boots = boots_by_orders(numbers.orders, times, created, nodes)
        if boots:
            notes.always.append(
                "Boot times: from cluster_autoscaler_scaled_up_nodes_total to the nodes' creation."
            )
            return boots
    boots = boots_by_pods(numbers.facts, numbers.owners, created, nodes)
    if boots:
        notes.always.append(
            "Boot times: nothing tells when machines were ordered; a node took no longer than its oldest pod had waited."
        )
    return boots


def _add_workloads(cluster: Cluster, numbers: Numbers, nodes: Nodes, notes: Notes) -> None:
    shapes = shapes_of(numbers.facts, numbers.owners)
    taints = {name: lasting_taints(node) for name, node in nodes.by_name.items()}
    tolerated = tolerations_of(numbers.facts, numbers.owners, taints)
    workloads = {*numbers.replicas, *(workload for workload in shapes if workload[0] == "DaemonSet")}
    unseen, captured_ones, resized = [], [], []
    for workload in sorted(workloads):
        field, name = FIELDS[workload[0]], "/".join(workload[1:])
        values = numbers.replicas.get(workload)
        known = np.array([1.0]) if values is None else values[~np.isnan(values)]
        if not len(known):
            continue
        if values is not None and np.isnan(values[numbers.first : numbers.first + 2]).all():
            cluster.later.setdefault(field, []).append(name)
            continue
        if values is not None:
            cluster.scaled[workload[1], workload[2]] = round(known[0]), round(known[-1])
        if workload not in shapes:
            unseen.append(name)
            continue
        if changed(shapes[workload]):
            resized.append(name)
        item = workload_object(workload, round(known[0]), shapes[workload][0], tolerated.get(workload, ()))
        cluster.workloads.setdefault(field, []).append(item)
        captured_ones.append(workload)
    cluster.workloads["namespaces"] = namespaces_of(captured_ones)
    cluster.loose = len(numbers.owners.alone) + sum(
        workload[0] not in FIELDS for workload in numbers.owners.of.values()
    )
    if unseen:
        notes.alone.append(
            f"{len(unseen)} workloads had no pod, so that nothing tells what one asks for: {_some(unseen)}."
        )
    if resized:
        notes.alone.append(
            f"{len(resized)} workloads' requests or limits changed; the scenario has the first: {_some(resized)}."
        )
    budgets = ["/".join(row) for row in sorted(numbers.facts["budget"])]
    if budgets:
        notes.alone.append(
            f"{len(budgets)} disruption budgets have selectors that no series tells: {_some(budgets)}."
        )


def services_of(numbers: Numbers, cluster: Cluster, notes: Notes) -> Services:
    """Return HPAs and workloads with their load; what cannot be known goes into ``notes``."""
    services = Services(HorizontalSettings(), first=cluster.first, last=cluster.last, step=numbers.grid.step)
    scaled: set[Workload] = set()
    for (namespace, name), view in sorted(hpas_of(numbers.facts, notes.alone).items()):
        target = view.spec.scale_target_ref
        workload = target.kind, namespace, target.name
        scaled.add(workload)
        services.hpas[namespace, name] = HpaHistory(view, ticks=list(_ticks(numbers, workload)))
    for field, kind in (("deployments", "Deployment"), ("stateful_sets", "StatefulSet")):
        for item in cluster.workloads.get(field, ()):
            workload = kind, item.metadata.namespace, item.metadata.name
            if workload in numbers.used and workload not in scaled:
                services.others[workload] = list(_ticks(numbers, workload))
    started = {row: seen.first for row, seen in numbers.facts["pod started"].items()}
    for row, seen in numbers.facts["pod ready"].items():
        begun = started.get(row)
        if begun is not None and begun * 1e9 >= cluster.first and seen.first >= begun:
            services.ready_after.append(seen.first - begun)
    return services


def _ticks(numbers: Numbers, workload: Workload) -> Iterator[Tick]:
    nothing = np.full(numbers.grid.size, math.nan)
    replicas = numbers.replicas.get(workload, nothing).tolist()
    ready = numbers.ready.get(workload, nothing).tolist()
    used = numbers.used.get(workload, nothing).tolist()
    measured = numbers.measured.get(workload, nothing).tolist()
    for index in np.flatnonzero(numbers.covered).tolist():
        at = numbers.grid.at(index)
        serving = measured[index] if math.isnan(ready[index]) else ready[index]
        cores = None
        if measured[index] > 0:
            # Pods that were Ready and have no sample used what the others did.
            cores = used[index] * max(serving / measured[index], 1.0)
        yield Tick(
            at,
            None if math.isnan(replicas[index]) else round(replicas[index]),
            0 if math.isnan(serving) else round(serving),
            None if cores is None else cores * 1000,
            Instant(at - numbers.window // 2),
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
