"""Checks the invariants of a run independently of the code that must keep them.

The checkers read the cluster and the cloud only, with rules of their own, and say in a sentence
what was broken and when. A run that breaks one fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubetide.objects.meta import Key, controller_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished, pod_condition
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.workload import Deployment
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import NodeGroup
from kubetide.units.selectors import Selector
from kubetide.units.time import format_rfc3339
from kubetide.watching import Informer

_MOST_KEPT = 100


class Checkers:
    """Checks a run; ``violations`` holds violated invariants, oldest first, at most a hundred."""

    def __init__(
        self,
        *,
        clock: Clock,
        pods: Informer[Pod],
        nodes: Informer[Node],
        deployments: Informer[Deployment],
        pdbs: Informer[PodDisruptionBudget],
        expendable_below: int = -10,
    ) -> None:
        self.violations: list[str] = []
        self._clock = clock
        self._pods = pods
        self._nodes = nodes
        self._deployments = deployments
        self._pdbs = pdbs
        self._expendable_below = expendable_below
        pods.on_change(self._pod_changed)

    def groups_changed(self, groups: Sequence[NodeGroup]) -> None:
        """Check the node groups, which have changed."""
        for group in groups:
            if not group.min_size <= group.target_size <= group.max_size:
                self._broken(
                    f"node group {group.id}: target size {group.target_size} is outside "
                    f"{group.min_size} to {group.max_size}"
                )

    def _broken(self, what: str) -> None:
        if len(self.violations) < _MOST_KEPT:
            self.violations.append(f"{format_rfc3339(self._clock.now())} {what}")

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is None:
            return
        if new is None:
            self._check_not_lost(key, old)
        elif _was_evicted(new) and not _was_evicted(old):
            self._check_budgets(key, old)

    def _check_not_lost(self, key: Key, last: Pod) -> None:
        owner = controller_of(last.metadata)
        if (
            last.spec.node_name
            and ("", last.spec.node_name) not in self._nodes.objects
            and last.metadata.deletion_timestamp is None
            and not is_finished(last)
            and (owner is None or owner.kind != "DaemonSet")
            # Nodes go as if such a pod were not there. Source: Cluster Autoscaler, --expendable-pods-priority-cutoff.
            and (last.spec.priority is None or last.spec.priority >= self._expendable_below)
        ):
            self._broken(
                f"pod {key[0]}/{key[1]} was lost with its node {last.spec.node_name}, not deleted gracefully"
            )

    def _check_budgets(self, key: Key, evicted: Pod) -> None:
        if not _is_ready(evicted):
            return
        for pdb in self._pdbs.objects.values():
            selector = Selector.from_object(pdb.spec.selector)
            if pdb.metadata.namespace != key[0] or not selector.matches(evicted.metadata.labels):
                continue
            left = sum(
                1
                for other, pod in self._pods.objects.items()
                if other != key
                and other[0] == key[0]
                and selector.matches(pod.metadata.labels)
                and _is_ready(pod)
                and pod.metadata.deletion_timestamp is None
            )
            needed = self._needed(pdb, selector)
            if left < needed:
                self._broken(
                    f"pod {key[0]}/{key[1]} was evicted though the disruption budget {pdb.metadata.name} needs "
                    f"{needed} ready pods and {left} are left"
                )

    def _needed(self, pdb: PodDisruptionBudget, selector: Selector) -> int:
        """Pods that must stay ready. Source: policy/v1, percentages are of the owners' replicas, rounded up."""
        expected = sum(
            1 if deployment.spec.replicas is None else deployment.spec.replicas
            for (namespace, _), deployment in self._deployments.objects.items()
            if namespace == pdb.metadata.namespace
            and selector.matches(deployment.spec.template.metadata.labels)
        )
        if pdb.spec.min_available is not None:
            return _of(pdb.spec.min_available, expected)
        if pdb.spec.max_unavailable is not None:
            return max(0, expected - _of(pdb.spec.max_unavailable, expected))
        return 0


def unsettled(
    *, pods: Mapping[Key, Pod], deployments: Mapping[Key, Deployment], nodes: Iterable[Node]
) -> list[str]:
    """Return what has not settled: pods without a node, missing replicas, partly removed nodes."""
    found = [
        f"pod {namespace}/{name} has no node"
        for (namespace, name), pod in sorted(pods.items())
        if not pod.spec.node_name and not is_finished(pod)
    ]
    for (namespace, name), deployment in sorted(deployments.items()):
        desired = 1 if deployment.spec.replicas is None else deployment.spec.replicas
        if deployment.status.ready_replicas != desired or deployment.status.replicas != desired:
            found.append(
                f"deployment {namespace}/{name} wants {desired} pods, has {deployment.status.replicas}, "
                f"{deployment.status.ready_replicas} ready"
            )
    found += [
        f"node {node.metadata.name} is still marked for deletion"
        for node in nodes
        if any(taint.key == "ToBeDeletedByClusterAutoscaler" for taint in node.spec.taints or ())
    ]
    return found


def _of(value: str | int, total: int) -> int:
    if isinstance(value, str):
        return -(-int(value.rstrip("%")) * total // 100)
    return value


def _was_evicted(pod: Pod) -> bool:
    condition = pod_condition(pod, "DisruptionTarget")
    return (
        condition is not None and condition.status == "True" and condition.reason == "EvictionByEvictionAPI"
    )


def _is_ready(pod: Pod) -> bool:
    condition = pod_condition(pod, "Ready")
    return condition is not None and condition.status == "True"
