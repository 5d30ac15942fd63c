"""The page of series lists what ``kubetide run`` reports, and misses nothing that upstream has."""

from __future__ import annotations

import re
from typing import get_args

from tests.docs.tables import DOCS, rows, section
from tests.horizontal.running import START
from tests.horizontal.running import World as PodsWorld
from tests.nodes.live import World as NodesWorld
from tests.vertical.pods_world import World as PodsOfVpas
from tests.vertical.recommender.live import World as VpaWorld

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.horizontal.series import HorizontalSeries, show_sources
from kubetide.nodes.phases import Part
from kubetide.nodes.series import NodesSeries
from kubetide.nodes.series.not_understood import show_not_understood
from kubetide.runtime.notify import Notifier
from kubetide.runtime.series import (
    ClientSeries,
    show_caches,
    show_dropped,
    show_holds,
    show_leases,
    show_loops,
    show_process,
    show_skew,
)
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.exposition import Registry
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.series import AdmissionSeries
from kubetide.vertical.admission.settings import Settings as Admission
from kubetide.vertical.recommender.series.recommendations import RecommenderSeries
from kubetide.vertical.updater.series import UpdaterSeries
from kubetide.watching import Caches

PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
PODS = "horizontal_pod_autoscaler_controller_"
NODES = "cluster_autoscaler_"

UPSTREAM_PODS = {
    "reconciliations_total": ("action", "error"),
    "reconciliation_duration_seconds": ("action", "error"),
    "metric_computation_total": ("action", "error", "metric_type"),
    "metric_computation_duration_seconds": ("action", "error", "metric_type"),
    "num_horizontal_pod_autoscalers": (),
    "desired_replicas": ("hpa_name", "namespace"),
}

GPU = ("gpu_name", "gpu_resource_name")
UPSTREAM_NODES = {
    "cluster_safe_to_autoscale": (),
    "nodes_count": ("state",),
    "node_groups_count": ("node_group_type",),
    "unschedulable_pods_count": ("type",),
    "max_nodes_count": (),
    "cluster_cpu_current_cores": (),
    "cpu_limits_cores": ("direction",),
    "cluster_memory_current_bytes": (),
    "memory_limits_bytes": ("direction",),
    "node_group_min_count": ("node_group",),
    "node_group_max_count": ("node_group",),
    "node_group_target_count": ("node_group",),
    "node_group_healthiness": ("node_group",),
    "node_group_backoff_status": ("node_group", "reason"),
    "last_activity": ("activity",),
    "function_duration_seconds": ("function",),
    "function_duration_quantile_seconds": ("function",),
    "pending_node_deletions": (),
    "errors_total": ("type",),
    "scaled_up_nodes_total": ("dra_drivers", *GPU),
    "scaled_up_gpu_nodes_total": GPU,
    "failed_scale_ups_total": ("dra_drivers", *GPU, "reason"),
    "failed_node_creations_total": ("reason",),
    "failed_gpu_scale_ups_total": (*GPU, "reason"),
    "scaled_down_nodes_total": ("dra_drivers", *GPU, "reason"),
    "scaled_down_gpu_nodes_total": (*GPU, "reason"),
    "evicted_pods_total": ("eviction_result",),
    "unneeded_nodes_count": (),
    "unremovable_nodes_count": ("reason",),
    "scale_down_in_cooldown": (),
    "old_unregistered_nodes_removed_count": (),
    "overflowing_controllers_count": (),
    "skipped_scale_events_count": ("direction", "reason"),
    "created_node_groups_total": ("group_type",),
    "deleted_node_groups_total": ("group_type",),
    "node_taints_count": ("type",),
    "aws_request_duration_seconds": ("endpoint", "status"),
    "inconsistent_instances_migs_count": (),
    "binpacking_heterogeneity": ("cpu_count", "instance_type", "namespace_count"),
    "max_node_skip_eval_duration_seconds": (),
    "node_removal_latency_seconds": ("delay_reason", "deleted"),
    "dra_node_template_resources_mismatch": ("driver", "mismatch_type"),
    "skipped_pods_count": ("requestor",),
    "capacity_buffer_oldest_reconciliation_timestamp_seconds": ("new_buffer",),
}
"""Upstream's series without their prefix, and their labels in alphabetical order."""


def registered():
    """Return all series that a process with both loops can report."""
    registry = Registry()

    async def main(clock):
        ClientSeries(registry)
        HorizontalSeries(registry, PodsWorld(clock).controller, clock)
        show_sources(registry, PodsWorld(clock).controller)
        show_holds(registry, [])
        show_loops(registry, [])
        Notifier("", "slack", (), source="", clock=clock, registry=registry, warn=str)
        show_dropped(registry, lambda: 0)
        show_not_understood(registry, dict)
        NodesSeries(registry, NodesWorld(clock, emit_per_nodegroup_metrics=True).controller, clock)
        show_leases(registry, {})
        show_process(registry)
        show_skew(registry, lambda: 0)
        pods = PodsOfVpas(clock)
        AdmissionSeries(
            registry,
            AdmissionController(pods.cluster, clock, Admission(), caches=pods.caches, answers=object()),
        )
        UpdaterSeries(registry, pods.updater)
        RecommenderSeries(registry, VpaWorld(clock).controller, clock)
        show_caches(registry, Caches(EmbeddedCluster(Store(), clock, 1), clock), clock)

    run_virtual(main, start=START)
    return {one.name: (one.kind, one.labels) for one in registry.families}


def documented():
    """Return kind and labels by series, as the page says."""
    found = {}
    for row in rows(PAGE):
        if len(row) == 4:
            name, kind, labels, meaning = row
            assert meaning, name
            assert name.strip("`") not in found, f"{name} is listed twice"
            found[name.strip("`")] = kind, tuple(re.findall(r"`(\w+)`", labels))
    return found


def test_the_page_has_all_parts_of_a_tick():
    """The values of ``function`` on the page are those that can be reported."""
    parts = {row[0].strip("`") for row in rows(section(PAGE, "## Nodes")) if len(row) == 3}
    assert parts == {"main", *get_args(Part)}


def left_out():
    return {row[0].strip("`") for row in rows(section(PAGE, "## Nodes")) if len(row) == 2}


def test_the_page_has_all_series():
    """Names, kinds and labels on the page are those of the registry."""
    assert documented() == registered()


def test_labels_are_upstreams():
    """A series that bears upstream's name has upstream's labels."""
    upstream = {f"{PODS}{name}": labels for name, labels in UPSTREAM_PODS.items()} | {
        f"{NODES}{name}": labels for name, labels in UPSTREAM_NODES.items()
    }
    ours = {name: labels for name, (_, labels) in registered().items() if name.startswith((PODS, NODES))}
    assert ours == {name: upstream.get(name) for name in ours}


def test_what_upstream_has_is_here_or_explained():
    """Each of Cluster Autoscaler's series is either reported or in the list of those left out."""
    reported = {name for name in registered() if name.startswith(NODES)}
    assert reported | left_out() == {f"{NODES}{name}" for name in UPSTREAM_NODES}
    assert not reported & left_out()
    of_pods = {f"{PODS}{name}" for name in UPSTREAM_PODS} - set(registered())
    assert of_pods == {f"{PODS}metric_computation_duration_seconds"}
    assert "`metric_computation_duration_seconds`" in PAGE
