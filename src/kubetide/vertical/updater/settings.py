"""Settings of the updater: upstream's flags with upstream's names and defaults.

Source: vertical-pod-autoscaler 1.8.1, updater flags.
"""

from __future__ import annotations

import msgspec

from kubetide.units.time import Duration, hours, minutes
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.updater.rules.windows import WindowsError, read_windows


class Settings(msgspec.Struct, frozen=True):
    """Each field down to ``gates`` is the flag of the same name; windows, most evictions and provisioning are our own.

    Attributes:
        updater_interval: Time between two loops, and how long one may take.
        min_replicas: A group with fewer live pods is not updated, unless the VPA says otherwise.
        eviction_tolerance: Share of a group's replicas that may be down.
        eviction_rate_limit, eviction_rate_burst: Evictions a second, and at once; 0 or less limits nothing. Resizes
            in place have a limit of their own with the same numbers.
        use_admission_controller_status: Nothing is done without a fresh lease of the admission controller, as pods
            would come back as they were.
        admission_controller_status_lease_name, admission_controller_status_lease_namespace,
        admission_controller_status_lease_timeout: That lease, and when it is too old.
        in_place_skip_disruption_budget: Resizes that restart no container need no budget.
        pod_update_threshold: Least share by which requests must differ from the target within the bounds.
        in_recommendation_bounds_eviction_lifetime_threshold: A pod within the bounds must be as old as this.
        evict_after_oom_threshold: An OOM kill so soon after the start is a reason to update.
        update_windows: When pods may be changed, for VPAs whose annotation ``vertical.kubetide.io/update-windows`` says nothing;
            empty is always. Pods that were killed for their memory do not wait for a window.
        max_evictions_per_minute, max_namespace_evictions_per_minute: Most evictions within any minute, of all VPAs and
            of those in one namespace; 0 limits nothing. What is beyond waits for a later loop.
        provision_before_eviction: A pod whose replacement will ask for more is evicted only once a node has the capacity for
            that; the node loop of the same process looks for it, or buys it. Without such a loop nothing waits.
        concurrent_cpu_startup_boost_syncs: How many pods get back from their start-up boost at once.
        vpa_object_namespace, ignored_vpa_object_namespaces: Which VPA objects count.
        address, kube_api_qps, kube_api_burst: As upstream's.
        gates: The feature gates.
        compatibility: ``1.8.1``, or ``1.8.0`` for what that did otherwise: a DaemonSet counts its ready pods, an OOM
            kill of any age counts, and boosts end in the loop.
        max_cache_age, max_relist_loss, relist_hold: Nothing is changed on a cache of pods that has got nothing for
            longer, or for so long after a new list that lost more than this share; as in the other loops.
    """

    updater_interval: Duration = minutes(1)
    min_replicas: int = 2
    eviction_tolerance: float = 0.5
    eviction_rate_limit: float = -1.0
    eviction_rate_burst: int = 1
    use_admission_controller_status: bool = True
    admission_controller_status_lease_name: str = "vpa-admission-controller"
    admission_controller_status_lease_namespace: str = ""
    admission_controller_status_lease_timeout: Duration = minutes(1)
    in_place_skip_disruption_budget: bool = False
    pod_update_threshold: float = 0.1
    in_recommendation_bounds_eviction_lifetime_threshold: Duration = hours(12)
    evict_after_oom_threshold: Duration = minutes(10)
    update_windows: str = ""
    max_evictions_per_minute: int = 0
    max_namespace_evictions_per_minute: int = 0
    provision_before_eviction: bool = False
    concurrent_cpu_startup_boost_syncs: int = 1
    vpa_object_namespace: str = ""
    ignored_vpa_object_namespaces: tuple[str, ...] = ()
    address: str = ":8943"
    kube_api_qps: float = 50.0
    kube_api_burst: float = 100.0
    gates: FeatureGates = FeatureGates()
    compatibility: str = "1.8.1"
    max_cache_age: Duration = minutes(10)
    max_relist_loss: float = 0.2
    relist_hold: Duration = minutes(10)

    def __post_init__(self) -> None:
        if self.vpa_object_namespace and self.ignored_vpa_object_namespaces:
            raise ValueError(
                "vpa-object-namespace and ignored-vpa-object-namespaces exclude each other: set one of them"
            )
        if self.updater_interval <= 0:
            raise ValueError("updater-interval must be greater than 0")
        if self.admission_controller_status_lease_timeout <= 0:
            raise ValueError("admission-controller-status-lease-timeout must be greater than 0")
        if self.concurrent_cpu_startup_boost_syncs <= 0:
            raise ValueError("concurrent-cpu-startup-boost-syncs must be greater than 0")
        if self.update_windows:
            try:
                read_windows(self.update_windows)
            except WindowsError as error:
                raise ValueError(f"update-windows: {error}") from error
        for name in ("max_evictions_per_minute", "max_namespace_evictions_per_minute"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name.replace('_', '-')} must be 0 or more, but got {getattr(self, name)}")
        if self.compatibility not in {"1.8.0", "1.8.1"}:
            raise ValueError(f"compatibility must be 1.8.0 or 1.8.1, not {self.compatibility!r}")

    @property
    def limits_evictions(self) -> bool:
        """Whether there is a most of evictions in a minute."""
        return bool(self.max_evictions_per_minute or self.max_namespace_evictions_per_minute)

    @property
    def is_1_8_0(self) -> bool:
        """Whether the rules of 1.8.0 hold."""
        return self.compatibility == "1.8.0"
