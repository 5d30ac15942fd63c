"""Nodes that do not exist yet: what every provider's template has in common.

Source: cluster-autoscaler (Aug 2026), cloudprovider: ready conditions, kube-proxy pod, labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from kubetide.objects.base import Quantities
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from kubetide.units.quantity import Quantity, QuantityError

ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_PODS: Final = 110
"""Pods that a node takes where its provider knows no better."""

_TAINT_VALUE: Final = re.compile(r".*:(?:NoSchedule|NoExecute|PreferNoSchedule)", re.DOTALL)
_MIRROR = "kubernetes.io/config.mirror"
_KUBE_PROXY_PRIORITY = 2_000_000_000
_CONDITIONS: Final = (
    ("Ready", "True"),
    ("NetworkUnavailable", "False"),
    ("DiskPressure", "False"),
    ("MemoryPressure", "False"),
)


def template_node(
    group: str,
    *,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    capacity: Quantities,
    allocatable: Quantities | None = None,
    annotations: Mapping[str, str] | None = None,
    provider_id: str = "",
) -> Node:
    """Return a ready node of a group; without ``allocatable`` all of its capacity is for pods."""
    name = f"template-node-for-{group}"
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={**labels, HOSTNAME: name},
            annotations=dict(annotations) if annotations else None,
        ),
        spec=NodeSpec(provider_id=provider_id, taints=tuple(taints) or None),
        status=NodeStatus(
            capacity=dict(capacity),
            allocatable=dict(capacity if allocatable is None else allocatable),
            conditions=tuple(Condition(type=kind, status=status) for kind, status in _CONDITIONS),
        ),
    )


def generic_labels(
    *, arch: str, instance_type: str, region: str, zone: str, os: str = "linux"
) -> dict[str, str]:
    """Return the labels that the nodes of every cloud have."""
    return {ARCH: arch, OS: os, INSTANCE_TYPE: instance_type, REGION: region, ZONE: zone}


def kube_proxy(group: str) -> Pod:
    """Return the mirror pod of kube-proxy that upstream expects on each new node: 100m of CPU."""
    return Pod(
        metadata=ObjectMeta(
            name=f"kube-proxy-{group}",
            namespace="kube-system",
            labels={"component": "kube-proxy"},
            annotations={_MIRROR: "", "kubernetes.io/config.source": "file"},
        ),
        spec=PodSpec(
            priority=_KUBE_PROXY_PRIORITY,
            containers=(
                Container(name="kube-proxy", resources=ResourceRequirements(requests={"cpu": "100m"})),
            ),
        ),
    )


def readable_quantities(items: Iterable[tuple[str, str]]) -> dict[str, Quantity]:
    """Return the resources that name and text say; what is no quantity is left out."""
    found: dict[str, Quantity] = {}
    for name, text in items:
        with suppress(QuantityError):
            found[name] = Quantity.parse(text)
    return found


def taint_of(key: str, text: str) -> Taint:
    """Return the taint of a key whose text is ``value:Effect``."""
    value, _, effect = text.partition(":")
    return Taint(key=key, value=value, effect=effect)


def readable_taints(items: Iterable[tuple[str, str]]) -> tuple[Taint, ...]:
    """Return the taints that key and text say, ``value:Effect``; other texts are left out."""
    return tuple(taint_of(key, text) for key, text in items if _TAINT_VALUE.match(text))


def least_quantities(each: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the least amount of each resource that every one of these has; empty for none."""
    least: dict[str, int] | None = None
    for amounts in each:
        least = (
            dict(amounts)
            if least is None
            else {name: min(amount, amounts[name]) for name, amount in least.items() if name in amounts}
        )
    return least or {}
