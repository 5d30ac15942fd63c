"""Whether a pod would fit on a new node of a template."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.snapshot import Snapshot


def check_template(pod_class: PodClass, node: Node, daemon_pods: Sequence[Pod]) -> Refusal | None:
    """Return why a new node of a template rejects the class, or None if it accepts it.

    To ask about many classes, keep the result of ``fresh_node`` and ask it.
    """
    return fresh_node(node, daemon_pods).first_refusal(pod_class, node.metadata.name)


def check_in_cluster(
    snapshot: Snapshot, template: Node, daemon_pods: Sequence[Pod], pod_classes: Sequence[PodClass]
) -> list[Refusal | None]:
    """Return, per class, why a copy of a template that joined the cluster rejects it.

    For classes whose verdict depends on pods of other nodes (``Snapshot.minds_others``); for the rest
    a node by itself says the same. The snapshot is left as found.
    """
    snapshot.fork()
    try:
        name = template.metadata.name
        snapshot.add_template(template, daemon_pods, name)
        return [snapshot.first_refusal(pod_class, name) for pod_class in pod_classes]
    finally:
        snapshot.revert()


def fresh_node(node: Node, daemon_pods: Sequence[Pod], facts: ClusterFacts | None = None) -> Snapshot:
    """Return a snapshot with only the template, under its own name, with its DaemonSet pods.

    Args:
        node: The template.
        daemon_pods: What will be on it.
        facts: Of the cluster that it would join: without them claims are not looked at. Devices are looked
            at in the cluster only, see ``check_in_cluster``.
    """
    snapshot = Snapshot(facts and replace(facts, devices=None))
    snapshot.set_node(node)
    for pod in daemon_pods:
        snapshot.add_pod(pod, node.metadata.name)
    return snapshot
