"""The scheduling library: a columnar snapshot with fork and revert, the scheduler's filters and scores, packing."""

from __future__ import annotations

from kubetide.scheduling.devices.facts import Devices
from kubetide.scheduling.devices.objects import DeviceObjects
from kubetide.scheduling.estimator.packing import (
    Estimate,
    Limits,
    cluster_threshold,
    estimate,
    similar_groups_threshold,
)
from kubetide.scheduling.estimator.template import check_template, fresh_node
from kubetide.scheduling.placement import FIRST_START, Placements, hint_key, place
from kubetide.scheduling.pods.classes import classify, classify_unbound
from kubetide.scheduling.pods.grouping import PodGroup, equivalence_groups
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.resources import node_allocatable, pod_requests, pod_requests_on_node
from kubetide.scheduling.refusal import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Refusal, Shortfall
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts, facts_of_scheduler
from kubetide.scheduling.snapshot.node_pods import PodKey
from kubetide.scheduling.snapshot.objects import HeldObjects
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.scheduling.snapshot.volumes import VolumeObjects, Volumes
from kubetide.units.vectors import BoolVector, Int64Vector

__all__ = [
    "ERROR",
    "FIRST_START",
    "UNRESOLVABLE",
    "UNSCHEDULABLE",
    "BoolVector",
    "ClusterFacts",
    "DeviceObjects",
    "Devices",
    "Estimate",
    "HeldObjects",
    "Int64Vector",
    "Limits",
    "Placements",
    "PodClass",
    "PodGroup",
    "PodKey",
    "Refusal",
    "Shortfall",
    "Snapshot",
    "VolumeObjects",
    "Volumes",
    "check_template",
    "classify",
    "classify_unbound",
    "cluster_threshold",
    "equivalence_groups",
    "estimate",
    "facts_of_scheduler",
    "fresh_node",
    "hint_key",
    "node_allocatable",
    "place",
    "pod_requests",
    "pod_requests_on_node",
    "similar_groups_threshold",
]
