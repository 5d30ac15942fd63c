"""The group of an estimate that is estimated by division instead of placing its pods.

Source: cluster-autoscaler core (Jul 2026), ``--fastpath-binpacking-enabled``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.objects.base import Quantities
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.units.quantity import Quantity, QuantityError


def fast_path_group(template: Node, groups: Sequence[PodGroup], order: Sequence[int]) -> int | None:
    """Return the group whose division saves the most steps, or None if no group may be divided.

    Of equals, the later in ``order`` wins.
    """
    best: int | None = None
    most = 0
    for index in order:
        group = groups[index]
        if not _may_be_divided(group.pods[0]):
            continue
        nodes = _nodes_needed(template, group)
        saved = len(group.pods) - len(group.pods) // nodes if nodes else 0
        if best is None or saved >= most:
            best, most = index, saved
    return best


def _may_be_divided(pod: Pod) -> bool:
    if pod.spec.topology_spread_constraints is not None:
        return False
    against = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    terms = against.required_during_scheduling_ignored_during_execution if against else None
    return all(term.topology_key == HOSTNAME for term in terms or ())


def _nodes_needed(template: Node, group: PodGroup) -> int:
    """A rough count, by the first container and the whole capacity, as upstream takes it."""
    pod, number = group.pods[0], len(group.pods)
    containers = pod.spec.containers or ()
    requests = containers[0].resources.requests if containers else None
    nodes = 0
    for resource in ("cpu", "memory"):
        offered = _milli(template.status.capacity, resource)
        if offered > 0:
            nodes = max(nodes, -(-number * _milli(requests, resource) // offered))
    pod_class = group.pod_class
    if any(
        term.topology_key == HOSTNAME and term.selector.matches(pod_class.labels)
        for term in pod_class.anti_affinity
    ):
        nodes = max(nodes, number)
    return nodes


def _milli(quantities: Quantities | None, resource: str) -> int:
    try:
        return Quantity.parse((quantities or {}).get(resource, 0)).milli_value()
    except QuantityError:
        return 0
