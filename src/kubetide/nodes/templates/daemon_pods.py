"""The pods of DaemonSets on a node that does not exist yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.nodes.facts.new_pods import as_new
from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Origin
from kubetide.objects.meta import ObjectMeta, OwnerReference
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.workload import DaemonSet
from kubetide.scheduling.daemon_set_nodes import nodes_of_daemon_set

DaemonSets = Mapping[tuple[str, str], DaemonSet]


def with_daemon_pods(node: Node, pods: tuple[Pod, ...], origin: Origin, state: State) -> tuple[Pod, ...]:
    """Return the pods of a new node: ``pods``, and those that DaemonSets will put there.

    A live node shows its pods itself, unless --force-ds. While no node is there DaemonSets come and go.
    """
    sets: DaemonSets = state.daemon_sets
    is_outdated = origin == "seen" and state.settings.templates_by_instance_type
    if is_outdated:
        pods = _without_gone_sets(pods, sets)
    new_pods = state.memory.new_pods
    is_shown = origin in {"live", "seen", "unwell"} and not is_outdated
    if is_shown and not state.settings.force_ds:
        # A live node may lack a pod that is still to push others aside there; a new node has it from the start.
        sets = {key: one for key, one in sets.items() if _pushes_aside(one) or one.metadata.uid in new_pods}
    return tuple(as_new(pod, new_pods) for pod in pods + _daemon_pods(node, pods, sets))


def _without_gone_sets(pods: tuple[Pod, ...], daemon_sets: DaemonSets) -> tuple[Pod, ...]:
    there = {one.metadata.uid for one in daemon_sets.values()}
    return tuple(
        pod
        for pod in pods
        if all(owner.uid in there for owner in pod.metadata.owner_references or () if _is_daemon_set(owner))
    )


def _is_daemon_set(owner: OwnerReference) -> bool:
    return owner.kind == "DaemonSet" and owner.api_version == "apps/v1"


def _pushes_aside(daemon_set: DaemonSet) -> bool:
    """Return whether other pods make room for the set's pods on every node."""
    return daemon_set.spec.template.spec.priority_class_name == "system-node-critical"


def _daemon_pods(node: Node, there: Sequence[Pod], daemon_sets: DaemonSets) -> tuple[Pod, ...]:
    """Return the pods that DaemonSets will put on the node and that are not among ``there``.

    As upstream, the rules of the DaemonSet controller decide, not those of the scheduler.
    """
    if not daemon_sets:
        return ()
    has = {owner.uid for pod in there for owner in pod.metadata.owner_references or ()}
    missing = [one for _, one in sorted(daemon_sets.items()) if one.metadata.uid not in has]
    return tuple(_daemon_pod(one) for one in missing if nodes_of_daemon_set(one).verdict(node) == "run")


def _daemon_pod(daemon_set: DaemonSet) -> Pod:
    template = daemon_set.spec.template
    owner = OwnerReference(
        api_version="apps/v1",
        kind="DaemonSet",
        name=daemon_set.metadata.name,
        uid=daemon_set.metadata.uid,
        controller=True,
    )
    metadata = ObjectMeta(
        name=f"{daemon_set.metadata.name}-pod",
        namespace=daemon_set.metadata.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(owner,),
    )
    return Pod(metadata=metadata, spec=template.spec)
