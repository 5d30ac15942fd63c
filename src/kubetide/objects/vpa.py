"""autoscaling.k8s.io/v1 VerticalPodAutoscaler and VerticalPodAutoscalerCheckpoint.

v1beta2 objects read as the same types: what v1 added since is absent from them.

Source: vertical-pod-autoscaler 1.8, custom resource definitions and docs/api.md.
"""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.meta import ApiObject, Condition

UPDATES_ANNOTATION = "vpaUpdates"
"""Says of a pod what the admission controller set, and for which VPA."""

OFF = "Off"
INITIAL = "Initial"
RECREATE = "Recreate"
AUTO = "Auto"
IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"
IN_PLACE = "InPlace"
UPDATE_MODES = (OFF, INITIAL, RECREATE, IN_PLACE_OR_RECREATE, IN_PLACE, AUTO)
"""Values of ``updatePolicy.updateMode``; ``Auto`` is deprecated and means ``Recreate``."""

TARGET_HIGHER = "TargetHigherThanRequests"
TARGET_LOWER = "TargetLowerThanRequests"

CONTAINER_OFF = "Off"
CONTAINER_AUTO = "Auto"
ANY_CONTAINER = "*"
"""Container name of the policy for containers that no other policy names."""

REQUESTS_AND_LIMITS = "RequestsAndLimits"
REQUESTS_ONLY = "RequestsOnly"

BOOST_FACTOR = "Factor"
BOOST_QUANTITY = "Quantity"


class EvictionRequirement(ApiStruct):
    """Pods are evicted only if the target of one of ``resources`` compares to its request as required."""

    resources: tuple[str, ...] | None = None
    change_requirement: str = ""


class UpdatePolicy(ApiStruct):
    update_mode: str | None = None
    min_replicas: int | None = None
    eviction_requirements: tuple[EvictionRequirement, ...] | None = None
    evict_after_oom_seconds: int | None = field(default=None, name="evictAfterOOMSeconds")


class CpuStartupBoost(ApiStruct):
    """How much more CPU a container gets while it starts; ``factor`` for type Factor, ``quantity`` for Quantity."""

    type: str = ""
    factor: int | None = None
    quantity: str | int | float | None = None
    duration_seconds: int | None = None


class StartupBoost(ApiStruct):
    cpu: CpuStartupBoost | None = None


class ContainerPolicy(ApiStruct):
    container_name: str = ""
    mode: str | None = None
    min_allowed: Quantities | None = None
    max_allowed: Quantities | None = None
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str | None = None
    oom_bump_up_ratio: str | int | float | None = None
    oom_min_bump_up: str | int | float | None = None
    memory_aggregation_interval_seconds: int | None = None
    memory_aggregation_interval_count: int | None = None
    startup_boost: StartupBoost | None = None


class ResourcePolicy(ApiStruct):
    container_policies: tuple[ContainerPolicy, ...] | None = None


class RecommenderSelector(ApiStruct):
    name: str = ""


class VpaSpec(ApiStruct):
    target_ref: CrossVersionObjectReference | None = None
    update_policy: UpdatePolicy | None = None
    resource_policy: ResourcePolicy | None = None
    recommenders: tuple[RecommenderSelector, ...] | None = None
    startup_boost: StartupBoost | None = None


class ContainerRecommendation(ApiStruct):
    """``uncapped_target`` is the target before policies and global caps."""

    container_name: str = ""
    target: Quantities | None = None
    lower_bound: Quantities | None = None
    upper_bound: Quantities | None = None
    uncapped_target: Quantities | None = None


class PodRecommendation(ApiStruct):
    container_recommendations: tuple[ContainerRecommendation, ...] | None = None


class VpaStatus(ApiStruct):
    recommendation: PodRecommendation | None = None
    conditions: tuple[Condition, ...] | None = None
    observed_generation: int | None = None


class VerticalPodAutoscaler(ApiObject):
    spec: VpaSpec = field(default_factory=VpaSpec)
    status: VpaStatus = field(default_factory=VpaStatus)


class HistogramCheckpoint(ApiStruct):
    """Weights as shares of 10,000 by bucket number; ``total_weight`` is their true sum."""

    reference_timestamp: str | None = None
    bucket_weights: dict[str, int] | None = None
    total_weight: float = 0.0


class CheckpointSpec(ApiStruct):
    vpa_object_name: str = ""
    container_name: str = ""


class CheckpointStatus(ApiStruct):
    last_update_time: str | None = None
    version: str = ""
    cpu_histogram: HistogramCheckpoint = field(default_factory=HistogramCheckpoint)
    memory_histogram: HistogramCheckpoint = field(default_factory=HistogramCheckpoint)
    first_sample_start: str | None = None
    last_sample_start: str | None = None
    total_samples_count: int = 0


class VerticalPodAutoscalerCheckpoint(ApiObject):
    spec: CheckpointSpec = field(default_factory=CheckpointSpec)
    status: CheckpointStatus = field(default_factory=CheckpointStatus)
