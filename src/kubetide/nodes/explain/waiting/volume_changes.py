"""Where the volumes of a pod are: a node helps it only there."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.nodes.explain.waiting.group_changes import ANOTHER_GROUP
from kubetide.nodes.explain.waiting.pod_changes import Change
from kubetide.nodes.facts.zones import zone_labels, zones_of
from kubetide.objects.pod import Pod
from kubetide.scheduling import Volumes, classify_unbound


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
        needed = dict(zone_labels(volume))
        if any(labels.get(key) != zone for key, zone in needed.items()):
            text = f"add a group like {group} in zone {zones[0]}, where its volume {volume.metadata.name} is"
            return needed, Change(
                ANOTHER_GROUP, text, nodes=f"zone {zones[0]}, where volume {volume.metadata.name} is"
            )
    return None
