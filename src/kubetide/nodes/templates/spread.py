"""Groups whose next node may vary: in one of several zones, or of one of several types.

A template is one machine in one zone. A pod that needs a label which not every next node has would get a
machine that does not help it, again and again: such a group does not take it.
"""

from __future__ import annotations

import itertools
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.templates.amounts import INSTANCE_TYPE_LABELS
from kubetide.nodes.templates.learned import offered_types, offered_zones
from kubetide.nodes.templates.template import Template
from kubetide.objects.node import Node
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import ClusterFacts, PodClass, Refusal, Snapshot, fresh_node

ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.disk.csi.azure.com/zone",
    "topology.gke.io/zone",
)
_BY_LABELS: Final = ("NodeAffinity", "VolumeBinding", "VolumeZone")
"""The scheduler's filters that ask for values of a node's labels."""
_MOST_WAYS: Final = 64


def spread_text(group: NodeGroup) -> str:
    """Return in words over what the group is spread; empty if all next nodes are alike."""
    zones, types = offered_zones(group), offered_types(group)
    parts = []
    if len(zones) > 1:
        parts.append(f"in one of the zones {', '.join(zones)}")
    if len(types) > 1:
        parts.append(f"of one of the instance types {', '.join(types)}")
    if not parts:
        return ""
    return f"the cloud decides about its next node, which is {' and '.join(parts)}; a group for each is predictable"


class Ways:
    """The nodes that may come instead of a template, to be evaluated one by one."""

    def __init__(self, template: Template, group: NodeGroup, facts: ClusterFacts) -> None:
        zones, types = offered_zones(group), offered_types(group)
        ways = itertools.product(zones if len(zones) > 1 else ("",), types if len(types) > 1 else ("",))
        self._name = template.node.metadata.name
        self._ways: list[tuple[str, Snapshot]] = []
        for zone, kind in itertools.islice(ways, _MOST_WAYS):
            node = _as_way(template.node, zone, kind)
            self._ways.append((" ".join(filter(None, (zone, kind))), fresh_node(node, (), facts)))

    def refusal(self, pod_class: PodClass) -> Refusal | None:
        """Return why one of the nodes lacks labels that the pods require; None if none does."""
        for way, fresh in self._ways:
            refusal = fresh.first_refusal(pod_class, self._name)
            if refusal is not None and refusal.plugin in _BY_LABELS:
                return replace(refusal, detail=f"the group's next node may be one of {way}")
        return None


def _as_way(node: Node, zone: str, kind: str) -> Node:
    labels = dict(node.metadata.labels or {})
    for keys, value in ((ZONE_LABELS, zone), (INSTANCE_TYPE_LABELS, kind)):
        if value:
            labels.update(dict.fromkeys((keys[0], *(key for key in keys if key in labels)), value))
    return replace(node, metadata=replace(node.metadata, labels=labels))
