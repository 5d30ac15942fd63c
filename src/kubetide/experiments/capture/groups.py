"""Node groups of a captured cluster: sizes, machines, prices, and boot times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kubetide.experiments.capture.cluster import Cluster, Failures
from kubetide.objects.base import Json
from kubetide.objects.node import Node, Taint
from kubetide.ports.cloud import NodeGroup
from kubetide.units.quantity import bytes_to_text, milli, milli_to_text, whole
from kubetide.units.time import format_rfc3339

_TYPE = "node.kubernetes.io/instance-type"
_ZONE = "topology.kubernetes.io/zone"
_FINE_S = 10
"""Shorter times count in tenths of a second."""
_WELL_KNOWN = ("kubernetes.io/", "k8s.io/", "kubetide.dev/")
_STATIC = "no-group"
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
)
"""How the keys of taints begin that controllers set and take away again."""


def groups_of(cluster: Cluster) -> tuple[list[Json], Json, list[str]]:
    """Return the node groups, their instance types by name, and notes about them."""
    groups: list[Json] = []
    types: Json = {}
    notes: list[str] = []
    for group in cluster.groups:
        node = group.template.node if group.template is not None else cluster.shapes.get(group.id)
        if node is None:
            notes.append(
                f"Node group {group.id}: neither a template nor a node tells what its machines are; it is left out."
            )
            continue
        groups.append(_group(group, node, cluster, types, notes))
    alone = cluster.at_start.get("", [])
    if alone:
        shape = cluster.shapes[""]
        type_name = _type(types, _STATIC, shape, None)
        size = len(alone)
        groups.append({"name": _STATIC, "instanceType": type_name, "min": size, "max": size, **_marks(shape)})
        notes.append(
            f"{size} nodes are in no group; they are {size} alike, as {alone[0]}, stay, and cost nothing."
        )
    return groups, types, notes


def _group(group: NodeGroup, node: Node, cluster: Cluster, types: Json, notes: list[str]) -> Json:
    if group.price_per_hour is None:
        notes.append(
            f"Node group {group.id}: no price is known, so that it costs nothing; set group/{group.id}.pricePerHour."
        )
    found: Json = {
        "name": group.id,
        "instanceType": _type(types, group.id, node, group.price_per_hour, cluster.shapes.get(group.id)),
        "min": group.min_size,
        "max": group.max_size,
        "initial": len(cluster.at_start.get(group.id, ())),
        **_marks(node),
    }
    if group.max_size > group.min_size:
        for field, what, times in (
            ("bootTime", "booted", cluster.boots),
            ("readyTime", "became Ready", cluster.readies),
            ("shutdownTime", "went", cluster.shutdowns),
        ):
            seen = times.get(group.id, ())
            if seen:
                found[field] = span_of(seen)
                machines = "1 machine" if len(seen) == 1 else f"{len(seen)} machines"
                notes.append(f"Node group {group.id}: {machines} {what}, in {said_of(found[field])}.")
            else:
                notes.append(
                    f"Node group {group.id}: no machine was seen that {what}; the time is that of the defaults."
                )
    if failures := cluster.failures.get(group.id):
        notes.append(f"Node group {group.id}: {_failures_text(failures)}")
    return found


def _failures_text(failures: Failures) -> str:
    """Return how often and when machines of a group could not be had, which a scenario does not know by itself."""
    count, first, last = failures
    when = f"at {format_rfc3339(first.at)} ({first.title})"
    if count > 1:
        when = f"{count} times, first {when}, last at {format_rfc3339(last.at)} ({last.title})"
    return f"machines could not be had {when}; the scenario's cloud always has them, unless you add faults."


def said_of(span: str) -> str:
    """Return a range of a scenario in words; one time where both ends are the same."""
    low, high = span.split("-")
    return low if low == high else f"{low} to {high}"


def span_of(times: Sequence[float]) -> str:
    """Return the shortest and the longest of some seconds as a range of a scenario, without the outer twentieths."""
    ordered = sorted(times)
    cut = len(ordered) // 20
    low, high = (round(one) if one >= _FINE_S else round(one, 1) for one in (ordered[cut], ordered[-1 - cut]))
    return f"{low:g}s-{high:g}s"


def _marks(node: Node) -> Json:
    labels = node.metadata.labels or {}
    own = {name: value for name, value in labels.items() if not _well_known(name)}
    taints = lasting_taints(node)
    found: Json = {"zone": labels[_ZONE]} if _ZONE in labels else {}
    if own:
        found["labels"] = own
    if taints:
        found["taints"] = [msgspec.to_builtins(taint) for taint in taints]
    return found


def lasting_taints(node: Node) -> list[Taint]:
    """Return the permanent taints: not those of a node's condition or removal."""
    return [taint for taint in node.spec.taints or () if not taint.key.startswith(_PASSING)]


def _well_known(name: str) -> bool:
    domain = name.rpartition("/")[0] + "/"
    return any(domain == one or domain.endswith(f".{one}") for one in _WELL_KNOWN)


def _type(types: Json, group: str, node: Node, price: float | None, live: Node | None = None) -> str:
    """Return the name of the group's instance type, put into ``types``; ``live`` shows what the machines really have."""
    labels = node.metadata.labels or {}
    name = labels.get(_TYPE) or f"machine-of-{group}"
    spec = _type_spec(node, price)
    actual = _memory(live if live is not None else node)
    if actual != _memory(node):
        spec["actualMemory"] = bytes_to_text(actual)
    if types.get(name, spec) != spec:
        name = f"{name}-{group}"
    types[name] = spec
    return name


def _memory(node: Node) -> int:
    return whole(str((node.status.capacity or {})["memory"]))


def _type_spec(node: Node, price: float | None) -> Json:
    capacity: dict[str, Any] = dict(node.status.capacity or {})
    free: dict[str, Any] = dict(node.status.allocatable or {})
    cpu, memory = milli(str(capacity["cpu"])), whole(str(capacity["memory"]))
    reserved_cpu = cpu - milli(str(free.get("cpu", capacity["cpu"])))
    reserved_memory = memory - whole(str(free.get("memory", capacity["memory"])))
    return {
        "cpu": milli_to_text(cpu),
        "memory": bytes_to_text(memory),
        "pods": int(whole(str(capacity.get("pods", 110)))),
        "reservedCpu": milli_to_text(reserved_cpu),
        "reservedMemory": bytes_to_text(reserved_memory),
        **({"gpu": int(whole(str(capacity["nvidia.com/gpu"])))} if "nvidia.com/gpu" in capacity else {}),
        **({} if price is None else {"pricePerHour": price}),
    }
