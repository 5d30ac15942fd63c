"""Settings of the node loop: upstream's flags that are in use, by their own names, and a few of ours.

Defaults are those of Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026).
"""

from __future__ import annotations

from typing import NamedTuple

from kubetide.nodes.consolidation.settings import ConsolidationSettings
from kubetide.objects.minor_version import check_version
from kubetide.ports.cloud import KnowsMachines, PodPrices
from kubetide.ports.limits import LimitError, parse_min_max
from kubetide.units.numbers import NumberError, parse_integer
from kubetide.units.time import ZERO, Duration, format_duration, hours, minutes, seconds

WITHOUT_FLAG = frozenset({"provider", "gpu_label", "knows_machines", "pod_prices", "seed", "advises"})
"""Fields that no flag sets: the cloud, the run's seed and ``act`` say them."""


class Range(NamedTuple):
    """A ``<min>:<max>`` flag."""

    minimum: int
    maximum: int


def parse_range(text: str, flag: str) -> Range:
    """Return the range of ``<min>:<max>``. Raises ValueError that names the flag and the fix."""
    try:
        return Range(*parse_min_max(text))
    except LimitError as error:
        raise ValueError(f"--{flag}={text}: give <min>:<max> with 0 <= min <= max, such as 0:320") from error


def parse_gpu_total(text: str) -> tuple[str, Range]:
    """Return the limit of ``<gpu type>:<min>:<max>``. Raises ValueError that names the flag and the fix."""
    gpu, first, limits = text.partition(":")
    wrong = (
        f"--gpu-total={text}: give <gpu type>:<min>:<max> with 0 <= min <= max, such as nvidia-tesla-t4:0:16"
    )
    if not gpu or not first:
        raise ValueError(wrong)
    try:
        return gpu, parse_range(limits, "gpu-total")
    except ValueError:
        raise ValueError(wrong) from None


class DrainTurn(NamedTuple):
    """A turn of --drain-priority-config: pods from this priority on, and the seconds they get to end."""

    priority: int
    seconds: int


def parse_drain_turns(text: str) -> tuple[DrainTurn, ...]:
    """Return the turns of ``<priority>:<seconds>,...`` by priority. Raises ValueError that names the flag and the fix."""
    turns = []
    for part in text.split(","):
        priority, _, time = part.partition(":")
        try:
            turns.append(DrainTurn(parse_integer(priority), parse_integer(time)))
        except NumberError:
            turns.append(DrainTurn(0, -1))
    if any(turn.seconds < 0 for turn in turns):
        raise ValueError(
            f"--drain-priority-config={text}: give <priority>:<seconds>, with commas between several, such as 0:60,1000:30"
        )
    return tuple(sorted(turns))


def drain_turns(settings: Settings) -> tuple[DrainTurn, ...]:
    """Return the eviction turns: one for all pods, unless --drain-priority-config says otherwise."""
    if not settings.drain_priority_config:
        return (DrainTurn(0, settings.max_graceful_termination_sec),)
    return parse_drain_turns(settings.drain_priority_config)


class Settings(ConsolidationSettings, frozen=True, kw_only=True, omit_defaults=True):
    """The flags, dashes written as underscores; durations in ns. The last block is kubetide's own."""

    scan_interval: Duration = seconds(10)
    frequent_loops_enabled: bool = True
    namespace: str = "kube-system"
    status_config_map_name: str = "cluster-autoscaler-status"
    write_status_configmap: bool = True
    emit_per_nodegroup_metrics: bool = False
    provider: str = ""
    """The cloud's name; no flag. aws, gce and azure have rules of their own for similar groups."""
    gpu_label: str = ""
    """The node label of GPU nodes; no flag, the cloud says it."""
    knows_machines: KnowsMachines = "any"
    """Of which nodes the cloud can say whether their machine is there; no flag, the cloud says it."""
    pod_prices: PodPrices = PodPrices()
    """What a pod's share of a machine costs; no flag, the cloud says it."""
    advises: bool = False
    """Whether the run only advises, so that a removal stands as advice and is decided on as if followed; no flag."""

    # Cluster state
    max_node_provision_time: Duration = minutes(15)
    max_node_startup_time: Duration = minutes(15)
    max_total_unready_percentage: float = 45.0
    ok_total_unready_count: int = 3
    force_delete_unregistered_nodes: bool = False
    force_delete_failed_nodes: bool = False
    startup_taint: tuple[str, ...] = ()
    startup_taint_prefix: tuple[str, ...] = ()
    status_taint: tuple[str, ...] = ()
    initial_node_group_backoff_duration: Duration = minutes(5)
    max_node_group_backoff_duration: Duration = minutes(30)
    node_group_backoff_reset_timeout: Duration = hours(3)
    node_info_cache_expire_time: Duration = hours(87600)

    # Scale-up
    scale_up_from_zero: bool = True
    expander: str = "least-waste"
    grpc_expander_url: str = ""
    grpc_expander_cert: str = ""
    max_nodes_total: int = 0
    cores_total: str = "0:320000"
    memory_total: str = "0:6400000"
    gpu_total: tuple[str, ...] = ()
    max_nodes_per_scaleup: int = 1000
    max_binpacking_time: Duration = minutes(5)
    max_nodegroup_binpacking_duration: Duration = seconds(10)
    fastpath_binpacking_enabled: bool = False
    expendable_pods_priority_cutoff: int = -10
    new_pod_scale_up_delay: Duration = ZERO
    balance_similar_node_groups: bool = False
    balancing_label: tuple[str, ...] = ()
    """Without effect, as upstream."""
    balancing_ignore_label: tuple[str, ...] = ()
    memory_difference_ratio: float = 0.015
    max_allocatable_difference_ratio: float = 0.05
    max_free_difference_ratio: float = 0.05
    parallel_scale_up: bool = False
    scaleup_simulation_for_skipped_node_groups_enabled: bool = False
    salvo_scale_up: bool = False
    salvo_scale_up_budget: Duration = minutes(1)
    enforce_node_group_min_size: bool = False
    force_ds: bool = False
    allowed_scheduler_names: tuple[str, ...] = ()
    bypassed_scheduler_names: tuple[str, ...] = ()
    enable_dynamic_resource_allocation: bool = True
    """Whether devices are looked at. Upstream can no longer do without."""
    scale_from_unschedulable: bool = False
    enable_graceful_degradation: bool = False
    pending_pods_batching_timeout: Duration = minutes(4)
    enable_proactive_scaleup: bool = False
    pod_injection_limit: int = 5000
    cluster_snapshot_parallelism: int = 16
    """Without effect, as upstream."""

    # Requests for capacity
    enable_provisioning_requests: bool = False
    provisioning_request_initial_backoff_time: Duration = minutes(1)
    provisioning_request_max_backoff_time: Duration = minutes(10)
    provisioning_request_max_backoff_cache_size: int = 1000
    check_capacity_batch_processing: bool = False
    check_capacity_provisioning_request_max_batch_size: int = 10
    check_capacity_processor_instance: str = ""
    capacity_buffer_controller_enabled: bool = False
    capacity_buffer_pod_injection_enabled: bool = False
    capacity_buffer_pod_dry_run_enabled: bool = True
    capacity_quotas_enabled: bool = False

    # Scale-down
    scale_down_enabled: bool = True
    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_unneeded_time: Duration = minutes(10)
    scale_down_unready_enabled: bool = True
    scale_down_unready_time: Duration = minutes(20)
    scale_down_candidates_pool_ratio: float = 0.1
    """Without effect, as upstream; so are the next two."""
    scale_down_candidates_pool_min_count: int = 50
    scale_down_non_empty_candidates_count: int = 30
    scale_down_delay_after_add: Duration = minutes(10)
    scale_down_delay_after_delete: Duration = ZERO
    scale_down_delay_after_failure: Duration = minutes(3)
    scale_down_delay_type_local: bool = False
    ignore_daemonsets_utilization: bool = False
    ignore_mirror_pods_utilization: bool = False
    skip_nodes_with_custom_controller_pods: bool = True
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_system_pods: bool = True
    min_replica_count: int = 0
    blocking_system_pod_distruption_timeout: Duration = hours(1)
    unremovable_node_recheck_timeout: Duration = minutes(5)
    scale_down_simulation_timeout: Duration = seconds(30)
    max_scale_down_parallelism: int = 10
    max_drain_parallelism: int = 1
    max_bulk_soft_taint_count: int = 10
    max_bulk_soft_taint_time: Duration = seconds(3)
    node_deletion_candidate_ttl: Duration = ZERO
    cordon_node_before_terminating: bool = True
    node_delete_delay_after_taint: Duration = seconds(5)
    dynamic_node_delete_delay_after_taint_enabled: bool = False
    node_deletion_delay_timeout: Duration = minutes(2)
    node_deletion_batcher_interval: Duration = ZERO
    max_pod_eviction_time: Duration = minutes(2)
    max_graceful_termination_sec: int = 600
    drain_priority_config: str = ""
    daemonset_eviction_for_empty_nodes: bool = False
    daemonset_eviction_for_occupied_nodes: bool = True

    scheduler_config_file: str = ""
    """A KubeSchedulerConfiguration, checked at the start: one that would change what filters say is refused."""

    # Kubetide's own
    scheduler_plugins: tuple[str, ...] = ()
    """Filter plug-ins of other packages, by the names of their entry points; without them only the built-in filters."""
    drain_rules: tuple[str, ...] = ()
    """Drain rules of other packages, by the names of their entry points; without them only the built-in rules."""
    demand_sources: tuple[str, ...] = ("pending",)
    """Which of ``demand.SOURCES`` are asked, and those of other packages; ``intents`` needs a board."""
    seed: int = 0
    """For picks among equals; the wiring draws a fresh one, and records keep it."""
    status_interval: Duration = minutes(1)
    """The status ConfigMap is written at every change, and else once in this time."""
    templates_by_instance_type: bool = True
    """Whether what machines of an instance type have shown holds for other groups of the type, and over restarts."""
    balance_scale_down: bool = False
    """Whether of similar groups the larger gives nodes back first, so that zones stay balanced on the way down."""
    steer_pods_to_fuller_nodes: bool = False
    """Whether emptier nodes get soft taints, so that the scheduler fills fuller ones first and the others run empty."""
    group_must_fit_in_every_zone: bool = False
    """Whether a group over several zones or types takes only pods that may run on each of its next nodes."""
    prompt_scale_up: bool = False
    """Whether the next tick begins as soon as pods are old enough that were too new, and not with the scan interval."""
    recover_scale_ups: bool = False
    """Whether machines that are on their way at the start count as asked for, so that nothing is bought twice for their pods."""
    stock_out_memory: Duration = ZERO
    """How long an instance type is not asked for in a zone and market after a shortage, in any group, while others take the pods; 0 for never."""
    replace_late_nodes: bool = False
    """Whether the pods of a machine that takes much longer than others of its group are planned for again."""
    node_autoprovisioning_enabled: bool = False
    """Whether groups that pods need are created, and deleted when they are empty; as upstream had it until 1.32."""
    max_autoprovisioned_node_group_count: int = 15
    """Most groups that this program has created and that still exist."""
    max_node_increases_per_hour: int = 2000
    """Nodes that may be asked for within any hour; what is over it waits. A bound on mistakes, not a target."""
    max_node_deletions_per_hour: int = 500
    """Nodes whose deletion may begin within any hour."""
    max_evictions_per_hour: int = 5000
    """Pods that may be evicted within any hour."""
    max_cache_age: Duration = minutes(10)
    """Caches that have got nothing for longer hold scale-down."""
    max_relist_loss: float = 0.2
    """A relist that loses more than this share of the pods or nodes holds scale-down."""
    relist_hold: Duration = minutes(10)
    """How long such a relist holds scale-down."""
    least_cost_rounds: int = 40
    """Most rounds of column generation in which ``least-cost`` improves its greedy choice; 0 for none."""
    intent_patience: Duration = minutes(10)
    """Requested replicas that do not exist after so long buy no more nodes."""
    kubernetes_version: str = ""
    """Version of Kubernetes whose scheduler binds the pods: 1.36 or 1.37; empty for that of the API server, or 1.36."""

    def __post_init__(self) -> None:
        """Raise ValueError for a limit that is not ``<min>:<max>``, and for a number out of its range."""
        super().__post_init__()
        check_version(self.kubernetes_version)
        if self.scan_interval <= 0:
            raise ValueError(
                f"--scan-interval={format_duration(self.scan_interval)}: give more than 0, such as 10s"
            )
        parse_range(self.cores_total, "cores-total")
        parse_range(self.memory_total, "memory-total")
        for text in self.gpu_total:
            parse_gpu_total(text)
        if "grpc" in self.expander.split(",") and not self.grpc_expander_url:
            raise ValueError(
                f"--expander={self.expander}: grpc must know whom to ask; give --grpc-expander-url=HOST:PORT"
            )
        if self.max_autoprovisioned_node_group_count < 0:
            raise ValueError(
                f"--max-autoprovisioned-node-group-count={self.max_autoprovisioned_node_group_count}: "
                "give 0 or more, such as 15"
            )
        if self.drain_priority_config:
            parse_drain_turns(self.drain_priority_config)
        if self.least_cost_rounds < 0:
            raise ValueError(f"--least-cost-rounds={self.least_cost_rounds}: give 0 or more, such as 40")
