"""The kind ``similar`` of the clouds suite: whether two groups' nodes are interchangeable."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.conformance.cases import Case, difference

from kubetide.nodes.scale_up.increase.balancing import are_similar
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import fresh_node


def similar_difference(case: Case, provider: str) -> str | None:
    """Compare two groups by the rules of a provider."""
    given = case["input"]
    ratios = given.get("ratios") or {}
    settings = Settings(
        provider=provider,
        memory_difference_ratio=ratios.get("max_capacity_memory", 0.015),
        max_allocatable_difference_ratio=ratios.get("max_allocatable", 0.05),
        max_free_difference_ratio=ratios.get("max_free", 0.05),
        balancing_ignore_label=tuple(given.get("extra_ignored_labels") or ()),
    )
    found = are_similar(_template(given["a"]), _template(given["b"]), settings)
    return difference("similar", case["expect"]["similar"], found)


def _template(given: dict[str, Any]) -> Template:
    raw = {
        "metadata": {"name": "node", "labels": given["labels"]},
        "status": {"capacity": given["capacity"], "allocatable": given["allocatable"]},
    }
    node = msgspec.convert(raw, Node)
    pods = ()
    if given.get("pod_requests"):
        container = {"name": "c", "resources": {"requests": given["pod_requests"]}}
        pod = {"metadata": {"name": "pod", "namespace": "default"}, "spec": {"containers": [container]}}
        pods = (msgspec.convert(pod, Pod),)
    return Template(node, pods, "cloud", "recorded", fresh_node(node, pods))
