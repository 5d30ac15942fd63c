"""The process's own settings in ``kubetide run``, and the names of all settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NewType

from kubetide.loop import SHIPPED, flag_names, loop_entries
from kubetide.runtime.configuration.prometheus_settings import PrometheusSettings
from kubetide.units.time import Duration, minutes, seconds

Bytes = NewType("Bytes", int)
"""A size, written as a quantity such as 512Mi."""


class RunSettings(PrometheusSettings, frozen=True, kw_only=True):
    """The settings of the process; those of the loops are upstream's flags.

    Attributes:
        controllers: Which loops run.
        act: Whether anything is written; without it the run only advises.
        kubeconfig: Path; empty takes KUBECONFIG, then ~/.kube/config, then the pod's own account.
        context: Of the kubeconfig; empty takes its current one.
        adopt_hpas_after: An HPA without a status is taken on when nobody has written one for so long.
        cloud_provider: Whose node groups the node loop scales.
        cloud_config: The provider's file.
        catalog: A file of prices and shapes of machines, which hold over those of the cloud.
        nodes: Node groups by name, each ``MIN:MAX:NAME``.
        node_group_label: Keys of labels that name a node's group; of the provider ``labels``.
        node_group_auto_discovery: How node groups are found, each ``DISCOVERER:key=value,...``.
        aws_use_static_instance_list: Whether AWS is not asked for its instance types.
        regional: Whether the location of GCE is a region.
        gce_concurrent_refreshes: How many groups of GCE are listed at once.
        gce_mig_instances_min_refresh_wait_time: Least time between two lists of a group's instances.
        bulk_mig_instances_listing_enabled: Whether GCE's instances are listed by zone.
        leader_elect: Whether Leases keep other replicas, and upstream's autoscaler, from acting too.
        leader_elect_resource_name: Of the Lease of a run with one; empty for the loop's own name.
        leader_elect_lease_duration: For so long others wait for a leader that says nothing.
        leader_elect_renew_deadline: After so long without a renewal the leader stops writing.
        leader_elect_retry_period: Time between two tries.
        kube_api_qps: Requests a second to the API server, watches and leases apart; ``kube_api_burst`` at once.
        kube_api_content_type: What pods and nodes are asked for in.
        max_answer_size: Of one answer of the API server; a larger one is an error.
        max_list_objects: Of one list, all of its parts together; likewise.
        metric_sources: Sources of External metrics from other packages, which a metric's selector may name.
        notify_url: Webhook that decisions are sent to; empty for none. ``notify_format``, ``notify_reasons``: how, and which.
        address: Where health and metrics are served; empty serves nothing.
        max_inactivity: A loop that begins no tick for so long is not well (``runtime.health``).
        max_failing_time: Likewise one that ends none well; ``max_startup_time`` in place of both until its first has.
        debugging_snapshot_enabled: Whether ``/snapshotz`` shows what the node loop decided on.
        log_format: ``console`` for people, ``json`` for machines.
        out: Folder of the decision records, for ``kubetide explain``.
        max_records_size: Of the records of one loop; the oldest go when there would be more.
    """

    controllers: tuple[str, ...] = ("horizontal",)
    act: bool = False
    kubeconfig: str = ""
    context: str = ""
    adopt_hpas_after: Duration = seconds(60)
    cloud_provider: str = ""
    cloud_config: str = ""
    catalog: str = ""
    nodes: tuple[str, ...] = ()
    node_group_label: tuple[str, ...] = ()
    node_group_auto_discovery: tuple[str, ...] = ()
    aws_use_static_instance_list: bool = False
    regional: bool = False
    gce_concurrent_refreshes: int = 1
    gce_mig_instances_min_refresh_wait_time: Duration = seconds(5)
    bulk_mig_instances_listing_enabled: bool = False
    leader_elect: bool = True
    leader_elect_resource_name: str = ""
    leader_elect_lease_duration: Duration = seconds(15)
    leader_elect_renew_deadline: Duration = seconds(10)
    leader_elect_retry_period: Duration = seconds(2)
    kube_api_qps: float = 20.0
    kube_api_burst: int = 30
    kube_api_content_type: Literal["application/json", "application/vnd.kubernetes.protobuf"] = (
        "application/json"
    )
    max_answer_size: Bytes = Bytes(512 << 20)
    max_list_objects: int = 1_000_000
    metric_sources: tuple[str, ...] = ()
    notify_url: str = ""
    notify_format: Literal["cloudevents", "slack"] = "cloudevents"
    notify_reasons: tuple[str, ...] = ()
    address: str = "127.0.0.1:8085"
    max_inactivity: Duration = minutes(10)
    max_failing_time: Duration = minutes(15)
    max_startup_time: Duration = minutes(20)
    debugging_snapshot_enabled: bool = False
    log_format: Literal["console", "json"] = "console"
    out: str = "kubetide-out"
    max_records_size: Bytes = Bytes(4 << 30)


OWN: Final[Mapping[str, str]] = {field.replace("_", "-"): field for field in RunSettings.__struct_fields__}


SWITCHES: Final = frozenset(
    [
        "act",
        "leader-elect",
        "aws-use-static-instance-list",
        "regional",
        "bulk-mig-instances-listing-enabled",
        "prometheus-insecure",
    ]
)
REPEATED: Final = frozenset({"nodes", "node-group-auto-discovery"})
"""Flags that may be given many times; their values hold commas and colons, so that a line ends each."""


def is_setting(name: str) -> bool:
    """Return whether the process, not a loop, has the setting."""
    return name in OWN


def setting_names() -> list[str]:
    """Return the names of all settings, sorted: those of every loop of this package."""
    return sorted({*OWN, *flag_names(loop_entries(SHIPPED))})
