"""Settings of the recommender: upstream's flags under their own names, with upstream's defaults.

A flag ``--a-b`` is the field ``a_b``. Source: vpa-recommender 1.8.1.
"""

from __future__ import annotations

from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import ZERO, Duration, format_duration, hours, minutes
from kubetide.vertical.recommender.facts.history import HistorySettings

DEFAULT_RECOMMENDER = "default"
DEFAULT_ADDRESS = "http://prometheus.monitoring.svc"
"""Where upstream looks for Prometheus."""


class Settings(HistorySettings, frozen=True, omit_defaults=True):
    """Upstream's flags that the recommender reads, some of our own, and two rules of releases before 1.8.

    Attributes:
        recommender_name: Serves the VPAs that name it; ``default`` also those that name none.
        vpa_object_namespace: Only VPAs and pods of this namespace; empty for all.
        ignored_vpa_object_namespaces: VPAs of these are left alone.
        recommender_interval: Time between two passes.
        checkpoints_gc_interval: Time between two collections of checkpoints without a VPA.
        checkpoints_timeout: For so long checkpoints are written in one pass, at least some of them.
        storage: ``prometheus``: history from there, asked for once at the start, and no checkpoints at all.
        memory_saver: Only pods that match a VPA are tracked.
        update_worker_count: Writes in flight at once.
        container_recommendation_max_allowed_cpu, container_recommendation_max_allowed_memory: Quantities that
            cap what a VPA's policy has no maximum for; empty for none.
        per_vpa_config: Feature gate PerVPAConfig: policies may set OOM bumps and windows of memory peaks.
        use_external_metrics: Whether usage comes from the external metrics API, not from the resource metrics API.
        external_metrics_cpu_metric, external_metrics_memory_metric: Their names; empty for none of that resource.
        leave_to_hpa: Whether resources are left alone that an HPA of the same target scales on by utilization.
        wait_for_samples: Whether a container without a sample of usage gets no recommendation, or keeps the one that it has.
        oom_lower_bound: Whether an OOM kill is a lower bound of memory for a window, and no sample of usage.
        advise_selector: Labels of Deployments, StatefulSets and DaemonSets that get a recommendation without a VPA
            object, as advice that is nowhere written; empty for none.
        fit_node_groups: Whether targets are lowered until the containers of a pod fit a new node of some group together;
            needs the node loop in the same process.
        rollback_window: For so long after a change of requests more OOM kills or throttling bring the old ones back; 0
            is never.
        oom_age_by_window: As before 1.8: an OOM's age counts from the end of the window of memory peaks.
        forget_pods_first: As before 1.8: pods that are gone are dropped before a pass reads samples and OOMs.
    """

    recommender_name: str = DEFAULT_RECOMMENDER
    vpa_object_namespace: str = ""
    ignored_vpa_object_namespaces: tuple[str, ...] = ()
    recommender_interval: Duration = minutes(1)
    checkpoints_gc_interval: Duration = minutes(10)
    checkpoints_timeout: Duration = minutes(1)
    storage: str = ""
    memory_saver: bool = False
    update_worker_count: int = 10
    recommendation_margin_fraction: float = 0.15
    pod_recommendation_min_cpu_millicores: float = 25.0
    pod_recommendation_min_memory_mb: float = 250.0
    target_cpu_percentile: float = 0.9
    recommendation_lower_bound_cpu_percentile: float = 0.5
    recommendation_upper_bound_cpu_percentile: float = 0.95
    target_memory_percentile: float = 0.9
    recommendation_lower_bound_memory_percentile: float = 0.5
    recommendation_upper_bound_memory_percentile: float = 0.95
    confidence_interval_cpu: Duration = hours(24)
    confidence_interval_memory: Duration = hours(24)
    humanize_memory: bool = False
    round_cpu_millicores: int = 1
    round_memory_bytes: int = 1
    memory_aggregation_interval: Duration = hours(24)
    memory_aggregation_interval_count: int = 8
    memory_histogram_decay_half_life: Duration = hours(24)
    cpu_histogram_decay_half_life: Duration = hours(24)
    oom_bump_up_ratio: float = 1.2
    oom_min_bump_up_bytes: float = 104857600.0
    cpu_integer_post_processor_enabled: bool = False
    container_recommendation_max_allowed_cpu: str = ""
    container_recommendation_max_allowed_memory: str = ""
    use_external_metrics: bool = False
    external_metrics_cpu_metric: str = ""
    external_metrics_memory_metric: str = ""
    per_vpa_config: bool = False
    leave_to_hpa: bool = True
    wait_for_samples: bool = False
    oom_lower_bound: bool = False
    advise_selector: str = ""
    fit_node_groups: bool = False
    rollback_window: Duration = ZERO
    oom_age_by_window: bool = False
    forget_pods_first: bool = False

    def __post_init__(self) -> None:
        for name in (
            "recommender_interval",
            "memory_aggregation_interval",
            "memory_histogram_decay_half_life",
            "cpu_histogram_decay_half_life",
        ):
            if getattr(self, name) <= 0:
                flag = name.replace("_", "-")
                raise ValueError(
                    f"{flag} must be greater than 0, but got {format_duration(getattr(self, name))}"
                )
        try:
            self.advised()
        except SelectorError as exc:
            raise ValueError(f"advise-selector: {exc}") from exc
        if self.rollback_window < 0:
            raise ValueError(f"rollback-window must be 0 or more, but got {self.rollback_window} ns")
        if self.vpa_object_namespace and self.ignored_vpa_object_namespaces:
            raise ValueError("vpa-object-namespace and ignored-vpa-object-namespaces cannot both be set")
        for resource in ("cpu", "memory"):
            self.max_allowed(resource)
        self.check_history()
        if self.use_external_metrics and not (
            self.external_metrics_cpu_metric or self.external_metrics_memory_metric
        ):
            raise ValueError(
                "use-external-metrics needs external-metrics-cpu-metric or external-metrics-memory-metric: the names of "
                "the metrics"
            )

    @property
    def needs_requests(self) -> bool:
        """Whether what the containers of pods request plays a part."""
        return self.rollback_window > 0 or self.fit_node_groups

    @property
    def uses_checkpoints(self) -> bool:
        return self.storage != "prometheus"

    def max_allowed(self, resource: str) -> Quantity | None:
        """Return the global cap of a resource for policies without one; None for no cap. Raises: ValueError."""
        text = getattr(self, f"container_recommendation_max_allowed_{resource}")
        if not text:
            return None
        try:
            found = Quantity.parse(text)
        except QuantityError as exc:
            raise ValueError(f"container-recommendation-max-allowed-{resource}: {exc}") from exc
        return found if found != Quantity(0) else None

    def advised(self) -> Selector | None:
        """Return the selector of workloads that get advice without a VPA object; None for none. Raises: SelectorError."""
        return Selector.parse(self.advise_selector) if self.advise_selector else None

    def serves(self, namespace: str, recommenders: tuple[str, ...]) -> bool:
        """Return whether this recommender serves a VPA of the namespace that names these recommenders."""
        if self.vpa_object_namespace and namespace != self.vpa_object_namespace:
            return False
        if namespace in self.ignored_vpa_object_namespaces:
            return False
        if not recommenders:
            return self.recommender_name == DEFAULT_RECOMMENDER
        return self.recommender_name in recommenders
