"""Larger pods that are to take the place of running ones: these are evicted once nodes have the capacity.

Most fit where the running pod is once it has left; for the others a place is looked for as for pods that wait. Cluster
Autoscaler does not know of them; nobody announces them unless the VPA updater is asked to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubetide.nodes.facts.new_pods import as_new
from kubetide.nodes.facts.pods import is_daemon_set_pod, without_node
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.nodes.state import State
from kubetide.objects.base import Quantities
from kubetide.objects.meta import Key
from kubetide.objects.pod import Container, Pod
from kubetide.plan.board import Replacement
from kubetide.scheduling import classify

REPLACEMENTS: Final = "replacements"


class Replaced(NamedTuple):
    """A running pod that is to be replaced by a larger one.

    Attributes:
        announced: What stands on the board.
        budget: The PodDisruptionBudget that allows no eviction of it now; None where none refuses.
        is_expendable: Whether no node is ever bought for it.
    """

    announced: Replacement
    pod: Pod
    budget: Key | None
    is_expendable: bool


def replaced_pods(state: State) -> Iterator[Replaced]:
    """Yield the running pods that are to be replaced."""
    if not state.replacements:
        return
    cutoff = state.settings.expendable_pods_priority_cutoff
    allowances = Allowances.of(state.pdbs)
    for one in state.replacements:
        pod = state.pods.get(one.pod)
        if (
            pod is not None
            and pod.metadata.uid == one.uid
            and pod.metadata.deletion_timestamp is None
            and pod.spec.node_name in state.nodes
        ):
            budget = allowances.refusing(pod)
            if budget is None:
                allowances.take([pod])
            yield Replaced(one, pod, budget, is_expendable(pod, cutoff))


def replacement_pods(state: State) -> list[Pod]:
    """Return the new pods that would not fit where the running ones are.

    Nothing is held for pods that cannot be evicted anyway; a DaemonSet's pods can go nowhere else.
    """
    fits = fitting_in_place(state)
    return [
        _new_pod(state, one.announced, one.pod)
        for one in replaced_pods(state)
        if one.announced.uid not in fits
        and one.budget is None
        and not one.is_expendable
        and not is_daemon_set_pod(one.pod)
    ]


def fitting_in_place(state: State) -> frozenset[str]:
    """Return the uids of the running pods whose replacements fit on their nodes, all of them together."""
    snapshot, found = state.snapshot, set()
    snapshot.fork()
    try:
        for one, pod, budget, _ in replaced_pods(state):
            if budget is not None:
                continue
            node, new = pod.spec.node_name, _new_pod(state, one, pod)
            snapshot.remove_pod(one.pod)
            fits = snapshot.fits(classify(new), node)
            if fits:
                found.add(one.uid)
            snapshot.add_pod(new if fits else pod, node, key=one.pod)
    finally:
        snapshot.revert()
    return frozenset(found)


def key_of_replacement(one: Replacement) -> Key:
    """Return the key that stands for the new pod."""
    namespace, name = one.pod
    return namespace, f"{name}-replacement"


def _new_pod(state: State, one: Replacement, pod: Pod) -> Pod:
    """Return the pod that takes the place of a running one: with its claims, but for those that were made for it alone."""
    _, name = key_of_replacement(one)
    meta = replace(pod.metadata, name=name, uid="", creation_timestamp=None)
    volumes = tuple(volume for volume in pod.spec.volumes or () if volume.ephemeral is None)
    containers = tuple(
        _with_requests(container, one.requests.get(container.name, {}))
        for container in pod.spec.containers or ()
    )
    spec = replace(pod.spec, containers=containers, volumes=volumes or None)
    return as_new(without_node(replace(pod, metadata=meta, spec=spec)), state.memory.new_pods)


def _with_requests(container: Container, requests: Quantities) -> Container:
    resources = container.resources
    return replace(
        container, resources=replace(resources, requests={**(resources.requests or {}), **requests})
    )
