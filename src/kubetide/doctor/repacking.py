"""Which nodes would be empty if the scheduler filled nodes up, one after another."""

from __future__ import annotations

from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.objects.meta import LabelSelector, key_of
from kubetide.objects.pod import Pod, is_finished
from kubetide.scheduling import classify_unbound
from kubetide.scheduling.scoring import (
    NodeChooser,
    OwnerKey,
    OwnerSelectors,
    ScoredSnapshot,
    ScoreError,
    default_selector,
    incoming,
    profile_of,
)

PACKING = "mostAllocated"
"""The profile whose NodeResourcesFit scores with MostAllocated."""


def used_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Return the nodes that have pods which go elsewhere when their node does: no DaemonSet's, no static ones."""
    return frozenset(pod.spec.node_name for pod in snapshot.pods if _moves(pod))


def used_when_packed(snapshot: Snapshot) -> frozenset[str]:
    """Return the nodes that such pods would be on, had the scheduler placed each where least is free.

    They are placed anew, the oldest first, with the filters and the scores of the profile; one that then fits nowhere
    stays on its node.
    """
    state = snapshot.node_state
    cluster = ScoredSnapshot(state.snapshot.facts)
    cluster.set_volumes(state.volumes.for_filters())
    cluster.set_devices(state.devices.for_filters())
    for node in snapshot.nodes:
        cluster.set_node(node)
    moving = []
    for pod in snapshot.pods:
        if _moves(pod):
            moving.append(pod)
        elif pod.spec.node_name and not is_finished(pod):
            cluster.add_pod(pod, pod.spec.node_name)
    chooser, owners = NodeChooser(profile_of(PACKING)), _owners(snapshot)
    found = set()
    for pod in sorted(moving, key=lambda one: (one.metadata.creation_timestamp or "", key_of(one))):
        pod_class = classify_unbound(pod)
        spread = default_selector(pod, owners)
        given = incoming(
            pod, pod_class, spread, images=bool(cluster.images), minor=state.snapshot.facts.minor
        )
        try:
            name = chooser.choose(given, cluster) or pod.spec.node_name
        except ScoreError:
            name = pod.spec.node_name
        cluster.add_pod(pod, name, pod_class)
        found.add(name)
    return frozenset(found)


def _moves(pod: Pod) -> bool:
    if not pod.spec.node_name or is_finished(pod) or pod.metadata.deletion_timestamp:
        return False
    return not (is_daemon_set_pod(pod) or is_mirror_pod(pod))


def _owners(snapshot: Snapshot) -> OwnerSelectors:
    owners: dict[OwnerKey, LabelSelector | None] = {
        ("apps/v1", kind, one.metadata.namespace, one.metadata.name): one.spec.selector
        for kind, objects in (("ReplicaSet", snapshot.replica_sets), ("StatefulSet", snapshot.stateful_sets))
        for one in objects
    }
    return OwnerSelectors(owners=owners)
