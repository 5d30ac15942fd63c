"""kube-scheduler's order of nodes: zones take turns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubetide.objects.node import Node
from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.units.vectors import Int64Vector

_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")

Zone = tuple[str, str]


class NodeTree:
    """Nodes by region and zone, both in order of arrival; nodes without either are one zone.

    Source: kube-scheduler v1.36 node tree.
    """

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}
        self._zone_of: dict[str, Zone] = {}
        self.version = 0

    def put(self, node: Node) -> None:
        """Add a node, or move it to the zone of its present labels."""
        name, zone = node.metadata.name, _zone_of(node)
        before = self._zone_of.get(name)
        if before == zone:
            return
        if before is not None:
            self.remove(name)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None
        self.version += 1

    def remove(self, name: str) -> None:
        """Remove a node, if it is known."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]
        self.version += 1

    def names(self) -> list[str]:
        """Return all nodes, one of each zone in turn."""
        zones = [list(nodes) for nodes in self._zones.values()]
        longest = max(map(len, zones), default=0)
        return [nodes[at] for at in range(longest) for nodes in zones if at < len(nodes)]

    def order(self, row_of: Mapping[str, int]) -> Int64Vector:
        """Return the rows of all nodes, one of each zone in turn."""
        return np.array([row_of[name] for name in self.names()], np.int64)


def _zone_of(node: Node) -> Zone:
    labels = labels_of(node)
    region = next((labels[key] for key in _REGION if labels.get(key)), "")
    zone = next((labels[key] for key in _ZONE if labels.get(key)), "")
    return region, zone
