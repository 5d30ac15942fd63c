"""Which lost nodes get the taint that evicts their pods: none while too much is lost at once.

Source: node lifecycle controller v1.36, handleDisruption and ComputeZoneState, with the defaults of
kube-controller-manager. It also gives the taint to one node in ten seconds for each zone, which is not done here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from kubetide.objects.node import Node, node_condition

_UNHEALTHY_SHARE = 0.55
"""Upstream's --unhealthy-zone-threshold."""
_LARGE_ZONE = 50
"""Upstream's --large-cluster-size-threshold: in a partly lost zone of more nodes evictions go on, slowly."""
_FEW = 2

_Zone = tuple[str, str]


def evicting(nodes: Iterable[Node], lost: Collection[str]) -> dict[str, bool | None]:
    """Return whether each lost node has the evicting taint; None for one that stays as it is.

    Args:
        nodes: All nodes of the cluster.
        lost: Names of those that the control plane has lost.
    """
    ready, unready = Counter[_Zone](), Counter[_Zone]()
    zones: dict[str, _Zone] = {}
    for node in nodes:
        name, zone = node.metadata.name, _zone_of(node)
        if name in lost:
            zones[name] = zone
        counts = ready if name not in lost and is_ready(node) else unready
        counts[zone] += 1
    if not ready:
        return dict.fromkeys(zones, False)
    return {
        name: None if _is_partly_lost(ready[zone], unready[zone]) else True for name, zone in zones.items()
    }


def is_ready(node: Node | None) -> bool:
    """Return whether a node is there and Ready."""
    condition = None if node is None else node_condition(node, "Ready")
    return condition is not None and condition.status == "True"


def _is_partly_lost(ready: int, unready: int) -> bool:
    size = ready + unready
    return ready > 0 and unready > _FEW and unready / size >= _UNHEALTHY_SHARE and size <= _LARGE_ZONE


def _zone_of(node: Node) -> _Zone:
    labels = node.metadata.labels or {}
    return labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")
