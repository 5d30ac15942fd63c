"""Which labels name the zone of a node, and in which zones a volume can be used."""

from __future__ import annotations

from typing import Final

from kubetide.objects.node import Node
from kubetide.objects.storage import PersistentVolume

ZONE_KEYS: Final = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
    "topology.disk.csi.azure.com/zone",
    "topology.diskplugin.csi.alibabacloud.com/zone",
    "topology.com.tencent.cloud.csi.cbs/zone",
)
"""Labels that name the zone of a node: those of Kubernetes, and those by which CSI drivers of clouds bind their volumes."""


def zone_of(node: Node) -> str:
    """Return the zone of a node, by the first of the labels that name one; empty where none does."""
    labels = node.metadata.labels or {}
    return next((labels[key] for key in ZONE_KEYS if labels.get(key)), "")


def zone_labels(volume: PersistentVolume) -> list[tuple[str, str]]:
    """Return the labels of zones that the volume's node affinity names, with each of their values."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return [
        (one.key, value)
        for term in (required.node_selector_terms if required is not None else None) or ()
        for one in term.match_expressions or ()
        if one.key in ZONE_KEYS and one.operator == "In"
        for value in one.values or ()
    ]


def zones_of(volume: PersistentVolume) -> tuple[str, ...]:
    """Return the zones that a volume can be used in; none where its node affinity names none."""
    return tuple(sorted({zone for _, zone in zone_labels(volume)}))
