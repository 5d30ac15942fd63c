"""Which nodes a DaemonSet's pods may be on: its name, its labels and its taints decide, not what is free there.

Source: kube-controller-manager 1.36, pkg/controller/daemon (NodeShouldRunDaemonPod), which Cluster Autoscaler asks
about templates as well.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, PodSpec, Toleration
from kubetide.objects.workload import DaemonSet
from kubetide.scheduling.filters.taint_toleration import tolerates, untolerated
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.pod_class import PodClass

Verdict = Literal["run", "keep", "none"]
"""A node should run a pod, may keep one that it has, or must have none."""

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Taints that every DaemonSet pod tolerates. Source: Kubernetes documentation, DaemonSet."""
_TOLERATIONS = tuple(Toleration(key=key, operator="Exists", effect=effect) for key, effect in _TOLERATED)
_HOST_NETWORK = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


class DaemonSetNodes(msgspec.Struct, frozen=True):
    """What decides about the nodes of a DaemonSet's pods: the node that its template names, and its pods' class."""

    node_name: str
    pod_class: PodClass

    def verdict(self, node: Node) -> Verdict:
        """Return whether the node should run a pod; free capacity does not matter, the pod waits for it."""
        name, taints = node.metadata.name, node.spec.taints or ()
        selection = self.pod_class.selection
        if self.node_name and self.node_name != name:
            return "none"
        if selection is not None and not selection.holds(node.metadata.labels or {}, name):
            return "none"
        if untolerated(self.pod_class, taints) is None:
            return "run"
        evicts = (taint for taint in taints if taint.effect == "NoExecute")
        return "keep" if all(tolerates(self.pod_class.tolerations, taint) for taint in evicts) else "none"


def nodes_of_daemon_set(daemon_set: DaemonSet) -> DaemonSetNodes:
    """Return what decides about the nodes of the set's pods."""
    template = daemon_set.spec.template
    tolerations = (*(template.spec.tolerations or ()), *daemon_set_tolerations(template.spec))
    meta = ObjectMeta(namespace=daemon_set.metadata.namespace, labels=template.metadata.labels)
    pod = Pod(metadata=meta, spec=replace(template.spec, tolerations=tolerations))
    return DaemonSetNodes(template.spec.node_name, classify_unbound(pod))


def daemon_set_tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """Return the tolerations that a DaemonSet's pods get beside those of their template."""
    return (*_TOLERATIONS, _HOST_NETWORK) if spec.host_network else _TOLERATIONS
