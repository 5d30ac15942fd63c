"""Which nodes a DaemonSet's pods may be on, and what ties a pod to its node: pure rules.

Source: kube-controller-manager 1.36, pkg/controller/daemon (NodeShouldRunDaemonPod) and its util.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from kubetide.embedded.controllers.workloads.templates import to_json
from kubetide.objects.base import Json
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, PodSpec, PodTemplate, Toleration
from kubetide.objects.workload import DaemonSet
from kubetide.scheduling import PodClass, classify_unbound
from kubetide.scheduling.filters.taint_toleration import tolerates, untolerated

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


class Eligibility:
    """Which nodes the pods of one template may be on; a node is evaluated again only after ``forget``."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        template = daemon_set.spec.template
        self._template = template
        self._node_name = template.spec.node_name
        self._class = _class_of(daemon_set)
        self._verdicts: dict[str, Verdict] = {}

    def is_of(self, template: PodTemplate) -> bool:
        """Return whether this was made for that template."""
        if self._template is not template:
            if self._template != template:
                return False
            self._template = template  # the next comparison is by identity
        return True

    def forget(self, node: str) -> None:
        """Drop the verdict on a node that has changed or is gone."""
        self._verdicts.pop(node, None)

    def verdict(self, node: Node) -> Verdict:
        """Return whether the node should run a pod; free capacity does not matter, the pod waits for it."""
        name = node.metadata.name
        known = self._verdicts.get(name)
        if known is None:
            known = self._verdicts[name] = self._evaluate(node)
        return known

    def _evaluate(self, node: Node) -> Verdict:
        name, taints = node.metadata.name, node.spec.taints or ()
        selection = self._class.selection
        if self._node_name and self._node_name != name:
            return "none"
        if selection is not None and not selection.holds(node.metadata.labels or {}, name):
            return "none"
        if untolerated(self._class, taints) is None:
            return "run"
        evicts = (taint for taint in taints if taint.effect == "NoExecute")
        return "keep" if all(tolerates(self._class.tolerations, taint) for taint in evicts) else "none"


def _class_of(daemon_set: DaemonSet) -> PodClass:
    template = daemon_set.spec.template
    tolerations = (*(template.spec.tolerations or ()), *_added_tolerations(template.spec))
    meta = ObjectMeta(namespace=daemon_set.metadata.namespace, labels=template.metadata.labels)
    return classify_unbound(Pod(metadata=meta, spec=replace(template.spec, tolerations=tolerations)))


def _added_tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    return (*_TOLERATIONS, _HOST_NETWORK) if spec.host_network else _TOLERATIONS


def node_of(pod: Pod) -> str:
    """Return the node that a DaemonSet pod is on or pinned to; empty if it is tied to none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in (required and required.node_selector_terms) or ():
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.values:
                return field.values[0]
    return ""


def pinned(spec: Json, node: str, template: PodSpec) -> Json:
    """Return the spec with the node pinned and the DaemonSet tolerations added; the given one is left alone.

    The pin replaces what the template's terms say of node fields and stands in each of its terms.
    """
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    required: Json = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    pin = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    given: list[Json] = required.get("nodeSelectorTerms") or [{}]
    terms = [{**term, "matchFields": pin} for term in given]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    affinity["nodeAffinity"] = node_affinity
    added = [to_json(toleration) for toleration in _added_tolerations(template)]
    return {**spec, "affinity": affinity, "tolerations": [*(spec.get("tolerations") or ()), *added]}
