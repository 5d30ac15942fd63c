"""Where the volumes of a pod are: a node helps it only there."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.nodes.explain.waiting.group_changes import ANOTHER_GROUP
from kubetide.nodes.explain.waiting.pod_changes import Change
from kubetide.objects.pod import Pod
from kubetide.objects.storage import PersistentVolume
from kubetide.scheduling import Volumes, classify_unbound

ZONE_KEYS = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
    "topology.disk.csi.azure.com/zone",
    "topology.diskplugin.csi.alibabacloud.com/zone",
    "topology.com.tencent.cloud.csi.cbs/zone",
)
"""Labels that name the zone of a node: those of Kubernetes, and those by which CSI drivers of clouds bind their volumes."""


def zones_of(volume: PersistentVolume) -> tuple[str, ...]:
    """Return the zones that a volume can be used in; none where its node affinity names none."""
    return tuple(sorted({zone for _, zone in _zone_labels(volume)}))


def where_the_volume_is(
    pod: Pod, volumes: Volumes | None, labels: Mapping[str, str], group: str
) -> tuple[dict[str, str], Change] | None:
    """Return the labels of the zone in which a volume of the pod is, and the change that offers a group there.

    None if no volume of the pod is bound to one zone that is another than that of the group, by the labels of the group's nodes.
    """
    if volumes is None:
        return None
    for use in classify_unbound(pod).claims:
        claim = volumes.claim(use)
        volume = None if claim is None else volumes.persistent_volumes.get(claim.spec.volume_name or "")
        if volume is None or len(zones := zones_of(volume)) != 1:
            continue
        needed = dict(_zone_labels(volume))
        if any(labels.get(key) != zone for key, zone in needed.items()):
            text = f"add a group like {group} in zone {zones[0]}, where its volume {volume.metadata.name} is"
            return needed, Change(
                ANOTHER_GROUP, text, nodes=f"zone {zones[0]}, where volume {volume.metadata.name} is"
            )
    return None


def _zone_labels(volume: PersistentVolume) -> list[tuple[str, str]]:
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
