"""Which nodes a DaemonSet's pods may be on, and what ties a pod to its node: pure rules.

Source: kube-controller-manager 1.36, pkg/controller/daemon (NodeShouldRunDaemonPod) and its util.
"""

from __future__ import annotations

from kubetide.embedded.controllers.workloads.templates import to_json
from kubetide.objects.base import Json
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, PodSpec, PodTemplate
from kubetide.objects.workload import DaemonSet
from kubetide.scheduling.daemon_set_nodes import Verdict, daemon_set_tolerations, nodes_of_daemon_set


class Eligibility:
    """Which nodes the pods of one template may be on; a node is evaluated again only after ``forget``."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        template = daemon_set.spec.template
        self._template = template
        self._nodes = nodes_of_daemon_set(daemon_set)
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
            known = self._verdicts[name] = self._nodes.verdict(node)
        return known


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
    added = [to_json(toleration) for toleration in daemon_set_tolerations(template)]
    return {**spec, "affinity": affinity, "tolerations": [*(spec.get("tolerations") or ()), *added]}
