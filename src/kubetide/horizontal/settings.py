"""Settings of the horizontal loop: upstream's flags and feature gates with upstream's defaults.

Source: kube-controller-manager v1.36 and v1.37, ``--horizontal-pod-autoscaler-*`` and the feature gates
``HPAConfigurableTolerance``, ``HPAScaleToZero`` and ``PodLevelResources``.
"""

from __future__ import annotations

import msgspec

from kubetide.objects.minor_version import check_version, minor_of
from kubetide.units.time import ZERO, Duration, format_duration, minutes, seconds


class FeatureGates(msgspec.Struct, frozen=True):
    """Upstream's feature gates that the loop reads.

    Attributes:
        configurable_tolerance: ``behavior.scaleUp/scaleDown.tolerance`` count (on; cannot be turned off in v1.37).
        scale_to_zero: Workloads scaled to zero by the loop may come back; None for upstream's default (off in v1.36, on
            in v1.37).
        pod_level_resources: Pod-level requests stand for the sum of the containers' (beta, on).
    """

    configurable_tolerance: bool = True
    scale_to_zero: bool | None = None
    pod_level_resources: bool = True


class Settings(msgspec.Struct, frozen=True):
    """Upstream's flags, six of ours, and four of ours that the node loop has too.

    Attributes:
        sync_period: Time between two ticks.
        downscale_stabilization: Window of scale-downs where ``behavior.scaleDown`` has none.
        tolerance: How far the ratio may be from 1 without a change.
        cpu_initialization_period: For so long after its start a pod's CPU may be skipped.
        initial_readiness_delay: Within it after the start, a change to not ready is the first state.
        concurrent_syncs: Writes in flight at once.
        immediate_sync: HPAs that are new, or have a new spec, do not wait for the next tick, as with v1.37.
        metrics_status_period: A status of which only what was measured has changed is written once in so long;
            0 writes every change, as upstream does.
        forecast: The forecast of HPAs that name none themselves: ``calendar``, ``strict``, or nothing where empty.
        forecaster: A second stage beside the calendar: ``headroom``, or the name of a plug-in; empty for none.
        forecast_budget: What pods for forecasts may cost in a day, as a share of those that the load asked for.
        options: Options of other packages, by the names of their entry points.
        emptiest_node_first: Pods on the emptiest nodes are marked to go first.
        gates: The feature gates.
        max_cache_age: Nothing is scaled down on a cache of pods that has got nothing for longer.
        max_relist_loss: Nor after a new list that lost more than this share of the pods.
        relist_hold: For how long after it.
        kubernetes_version: Version of Kubernetes whose controller is followed: ``1.36`` or ``1.37``; empty for that of
            the API server, or 1.36 where there is none.
    """

    sync_period: Duration = seconds(15)
    downscale_stabilization: Duration = minutes(5)
    tolerance: float = 0.1
    cpu_initialization_period: Duration = minutes(5)
    initial_readiness_delay: Duration = seconds(30)
    concurrent_syncs: int = 5
    immediate_sync: bool = False
    metrics_status_period: Duration = ZERO
    forecast: str = ""
    forecaster: str = ""
    forecast_budget: float = 0.25
    emptiest_node_first: bool = False
    options: tuple[str, ...] = ()
    gates: FeatureGates = FeatureGates()
    max_cache_age: Duration = minutes(10)
    max_relist_loss: float = 0.2
    relist_hold: Duration = minutes(10)
    kubernetes_version: str = ""

    @property
    def minor(self) -> int:
        """The minor version of Kubernetes whose controller is followed."""
        return minor_of(self.kubernetes_version)

    @property
    def looks_at_once(self) -> bool:
        """Whether HPAs that are new, or have a new spec, do not wait for the next tick."""
        return self.immediate_sync or self.minor >= 37

    @property
    def scales_from_zero(self) -> bool:
        """Whether workloads that the loop has scaled to zero may come back."""
        chosen = self.gates.scale_to_zero
        return self.minor >= 37 if chosen is None else chosen

    @property
    def has_own_tolerances(self) -> bool:
        """Whether tolerances of an HPA's behavior count."""
        return self.gates.configurable_tolerance or self.minor >= 37

    def __post_init__(self) -> None:
        check_version(self.kubernetes_version)
        if self.concurrent_syncs < 1:
            raise ValueError(
                f"concurrent-horizontal-pod-autoscaler-syncs must be greater than 0, but got {self.concurrent_syncs}"
            )
        if self.metrics_status_period < 0:
            raise ValueError(
                "horizontal-pod-autoscaler-metrics-status-period must not be negative, "
                f"but got {format_duration(self.metrics_status_period)}"
            )
        if self.forecast not in {"", "calendar", "strict"}:
            raise ValueError(
                f"--horizontal-pod-autoscaler-forecast={self.forecast}: there is calendar and strict; leave it empty for none"
            )
        if not 0 <= self.forecast_budget <= 10:
            raise ValueError(
                f"--horizontal-pod-autoscaler-forecast-budget={self.forecast_budget}: give a share from 0 to 10, such as 0.25"
            )
        if self.sync_period <= 0:
            raise ValueError(
                "horizontal-pod-autoscaler-sync-period must be greater than 0, "
                f"but got {format_duration(self.sync_period)}"
            )
