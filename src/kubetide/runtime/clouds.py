"""The cloud of a process: the provider that its settings name, with what they say of it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.nodes.settings import Settings
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupOptions
from kubetide.ports.cluster import Cluster
from kubetide.runtime.config import RunSettings
from kubetide.units.time import format_duration


def open_cloud(
    run: RunSettings, nodes: Settings, clock: Clock, cluster: Cluster | None = None
) -> AbstractAsyncContextManager[Cloud]:
    """Return the cloud that the settings name, open as long as the context is.

    Args:
        run: The settings of the process: provider, its file, its groups.
        nodes: The flags of the node loop, which hold for a group without options of its own.
        clock: The time.
        cluster: Where nodes join, for providers that read it.

    Raises: CloudNotFound.
    """
    flags = CloudFlags(
        cloud_config=run.cloud_config,
        nodes=run.nodes,
        node_group_auto_discovery=run.node_group_auto_discovery,
        aws_use_static_instance_list=run.aws_use_static_instance_list,
        regional=run.regional,
        gce_concurrent_refreshes=run.gce_concurrent_refreshes,
        gce_mig_instances_min_refresh_wait_time=run.gce_mig_instances_min_refresh_wait_time,
        bulk_mig_instances_listing_enabled=run.bulk_mig_instances_listing_enabled,
    )
    context = CloudContext(flags, clock, cluster=cluster, defaults=_defaults(nodes))
    return cloud_factory(run.cloud_provider)(context)


def _defaults(nodes: Settings) -> GroupOptions:
    return GroupOptions(
        scale_down_utilization_threshold=nodes.scale_down_utilization_threshold,
        scale_down_gpu_utilization_threshold=nodes.scale_down_gpu_utilization_threshold,
        scale_down_unneeded_time=format_duration(nodes.scale_down_unneeded_time),
        scale_down_unready_time=format_duration(nodes.scale_down_unready_time),
        max_node_provision_time=format_duration(nodes.max_node_provision_time),
        max_node_startup_time=format_duration(nodes.max_node_startup_time),
        ignore_daemonsets_utilization=nodes.ignore_daemonsets_utilization,
        zero_or_max_node_scaling=False,
    )
