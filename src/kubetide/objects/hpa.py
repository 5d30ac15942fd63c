"""autoscaling/v2 HorizontalPodAutoscaler."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject, Condition, LabelSelector


class CrossVersionObjectReference(ApiStruct):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricIdentifier(ApiStruct):
    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(ApiStruct):
    type: str = ""
    value: str | int | float | None = None
    average_value: str | int | float | None = None
    average_utilization: int | None = None


class ResourceMetricSource(ApiStruct):
    name: str = ""
    target: MetricTarget = field(default_factory=MetricTarget)


class ContainerResourceMetricSource(ApiStruct):
    name: str = ""
    container: str = ""
    target: MetricTarget = field(default_factory=MetricTarget)


class PodsMetricSource(ApiStruct):
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class ObjectMetricSource(ApiStruct):
    described_object: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class ExternalMetricSource(ApiStruct):
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class MetricSpec(ApiStruct):
    type: str = ""
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    pods: PodsMetricSource | None = None
    object: ObjectMetricSource | None = None
    external: ExternalMetricSource | None = None


class ScalingPolicy(ApiStruct):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(ApiStruct):
    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[ScalingPolicy, ...] | None = None
    tolerance: str | int | float | None = None


class Behavior(ApiStruct):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HpaSpec(ApiStruct):
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] | None = None
    behavior: Behavior | None = None


class MetricValueStatus(ApiStruct):
    value: str | int | float | None = None
    average_value: str | int | float | None = None
    average_utilization: int | None = None


class ResourceMetricStatus(ApiStruct):
    name: str = ""
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class ContainerResourceMetricStatus(ApiStruct):
    name: str = ""
    container: str = ""
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class PodsMetricStatus(ApiStruct):
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class ObjectMetricStatus(ApiStruct):
    described_object: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class ExternalMetricStatus(ApiStruct):
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class MetricStatus(ApiStruct):
    type: str = ""
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class HpaStatus(ApiStruct):
    observed_generation: int | None = None
    last_scale_time: str | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[MetricStatus, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class HorizontalPodAutoscaler(ApiObject):
    spec: HpaSpec = field(default_factory=HpaSpec)
    status: HpaStatus = field(default_factory=HpaStatus)
