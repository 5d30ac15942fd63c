"""Will it fit: a columnar snapshot with fork and revert, the scheduler's filters, packing."""

from __future__ import annotations

from kubetide.scheduling.pod_class import PodClass, classify, classify_unbound
from kubetide.scheduling.refusal import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Refusal, Shortfall
from kubetide.scheduling.resources import node_allocatable, pod_requests, pod_requests_on_node
from kubetide.scheduling.rows import BoolVector, Int64Vector
from kubetide.scheduling.snapshot import PodKey, Snapshot
from kubetide.scheduling.template import check_template, fresh_node

__all__ = [
    "ERROR",
    "UNRESOLVABLE",
    "UNSCHEDULABLE",
    "BoolVector",
    "Int64Vector",
    "PodClass",
    "PodKey",
    "Refusal",
    "Shortfall",
    "Snapshot",
    "check_template",
    "classify",
    "classify_unbound",
    "fresh_node",
    "node_allocatable",
    "pod_requests",
    "pod_requests_on_node",
]
