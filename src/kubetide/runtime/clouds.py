"""The cloud of a process: the provider that its settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from kubetide.clouds.catalog import read_catalog, with_catalog
from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.nodes.settings import Settings
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupOptions
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import CloudUnsupported
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.units.time import format_duration


@asynccontextmanager
async def open_cloud(
    run: RunSettings,
    nodes: Settings,
    clock: Clock,
    cluster: Cluster | None = None,
    *,
    warn: Callable[[str], None] = lambda _: None,
    refusal: Callable[[], str] = lambda: "",
) -> AsyncIterator[Cloud]:
    """Yield the cloud of the settings, combined with their catalogue.

    Args:
        run: The settings of the process: provider, its file, its groups.
        nodes: The flags of the node loop, which hold for a group without options of its own.
        clock: The time.
        cluster: Where nodes join, for providers that read it.
        warn: Called with a sentence for each column of the catalogue that has no effect, and each group that the provider
            leaves out.
        refusal: Returns why nothing may be changed now; a call of several requests asks it before each.

    Raises: CloudNotFound, CatalogError, CloudUnsupported where a flag asks for what the provider cannot do, and what
        the provider raises.
    """
    catalog = read_catalog(Path(run.catalog)) if run.catalog else None
    for problem in catalog.warnings if catalog else ():
        warn(problem)
    flags = CloudFlags(
        cloud_config=run.cloud_config,
        nodes=run.nodes,
        node_group_label=run.node_group_label,
        node_group_auto_discovery=run.node_group_auto_discovery,
        aws_use_static_instance_list=run.aws_use_static_instance_list,
        regional=run.regional,
        gce_concurrent_refreshes=run.gce_concurrent_refreshes,
        gce_mig_instances_min_refresh_wait_time=run.gce_mig_instances_min_refresh_wait_time,
        bulk_mig_instances_listing_enabled=run.bulk_mig_instances_listing_enabled,
    )
    context = CloudContext(
        flags, clock, cluster=cluster, defaults=_defaults(nodes), warn=warn, refusal=refusal
    )
    async with cloud_factory(run.cloud_provider)(context) as cloud:
        if nodes.node_autoprovisioning_enabled and not cloud.creates_groups:
            raise CloudUnsupported(
                f"--node-autoprovisioning-enabled: the provider {run.cloud_provider} cannot create node groups; "
                "leave the flag out"
            )
        yield cloud if catalog is None else with_catalog(cloud, catalog)


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
