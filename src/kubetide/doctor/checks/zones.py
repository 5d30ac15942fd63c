"""Pods bound to a zone by their volumes, whose groups all span several zones."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.facts.zones import ZONE_KEYS, zones_of
from kubetide.objects.pod import is_finished


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the pods whose volume is in one zone, and whose node is of a group over several zones.

    Of pods without a node only those for whose zone there is no group of that zone alone. A pod of either sort finds a
    node only if the group's next one comes up in its zone by chance.
    """
    zones_by_group = _zones_of_groups(snapshot)
    spread = {group: zones for group, zones in zones_by_group.items() if len(zones) > 1}
    alone = {min(zones) for zones in zones_by_group.values() if len(zones) == 1}
    if not spread:
        return
    bound = {
        (claim.metadata.namespace, claim.metadata.name): claim.spec.volume_name for claim in snapshot.claims
    }
    volumes = {one.metadata.name: one for one in snapshot.volumes}
    for pod in snapshot.pods:
        if is_finished(pod):
            continue
        group = snapshot.node_state.group_of(pod.spec.node_name)
        if pod.spec.node_name and group not in spread:
            continue
        names = (
            one.persistent_volume_claim.claim_name
            for one in pod.spec.volumes or ()
            if one.persistent_volume_claim
        )
        found = (volumes.get(bound.get((pod.metadata.namespace, name), "")) for name in names)
        zones = {zone for volume in found if volume is not None for zone in zones_of(volume)}
        if len(zones) != 1 or (not pod.spec.node_name and zones <= alone):
            continue
        shown = group if group in spread else min(spread)
        assert shown is not None
        yield Finding(
            check="zones",
            severity="warning",
            object=f"Pod {pod.metadata.namespace}/{pod.metadata.name}",
            seen=f"its volume is in zone {min(zones)}, and node group {shown} is over zones "
            f"{', '.join(sorted(spread[shown]))}",
            why="a new node of the group may come up in another zone: the pod then waits, and nodes are bought that "
            "do not help it",
            fix=f"make one group a zone, so that one of zone {min(zones)} can grow, with --balance-similar-node-groups",
        )


def _zones_of_groups(snapshot: Snapshot) -> dict[str, set[str]]:
    found = {group.id: {one.zone for one in group.offerings or () if one.zone} for group in snapshot.groups}
    for node in snapshot.nodes:
        group_id = snapshot.node_state.group_of(node.metadata.name)
        labels = node.metadata.labels or {}
        zone = next((labels[key] for key in ZONE_KEYS if labels.get(key)), "")
        if group_id is not None and zone:
            found[group_id].add(zone)
    return found
