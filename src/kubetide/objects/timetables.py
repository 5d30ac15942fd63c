"""Time tables of others: objects that set replicas or an autoscaler's bounds by the clock.

Tencent's HorizontalPodCronscaler, Alibaba's CronHorizontalPodAutoscaler, TKEStack's CronHPA and KEDA's
ScaledObject, of which the cron triggers are read.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.meta import ApiObject


class NamespacedReference(ApiStruct):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class HpcCron(ApiStruct):
    name: str = ""
    schedule: str = ""
    target_size: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    exclude_dates: tuple[str, ...] | None = None


class HpcSpec(ApiStruct):
    scale_target: NamespacedReference = field(default_factory=NamespacedReference)
    crons: tuple[HpcCron, ...] | None = None


class HpcStatus(ApiStruct):
    """The documents name no fields of the status; these are kubetide's."""

    last_schedule_time: str | None = None


class HorizontalPodCronscaler(ApiObject):
    """autoscaling.cloud.tencent.com/v1. Source: Tencent Cloud, TKE product documentation."""

    spec: HpcSpec = field(default_factory=HpcSpec)
    status: HpcStatus = field(default_factory=HpcStatus)


class CronHpaJob(ApiStruct):
    name: str = ""
    schedule: str = ""
    target_size: int = 0
    run_once: bool = False


class CronHorizontalPodAutoscalerSpec(ApiStruct):
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    exclude_dates: tuple[str, ...] | None = None
    jobs: tuple[CronHpaJob, ...] | None = None


class CronHpaCondition(ApiStruct):
    name: str = ""
    schedule: str = ""
    target_size: int = 0
    run_once: bool = False
    state: str = ""
    last_probe_time: str | None = None
    message: str = ""


class CronHorizontalPodAutoscalerStatus(ApiStruct):
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    exclude_dates: tuple[str, ...] | None = None
    conditions: tuple[CronHpaCondition, ...] | None = None


class CronHorizontalPodAutoscaler(ApiObject):
    """autoscaling.alibabacloud.com/v1beta1. Source: kubernetes-cronhpa-controller 31c63be."""

    spec: CronHorizontalPodAutoscalerSpec = field(default_factory=CronHorizontalPodAutoscalerSpec)
    status: CronHorizontalPodAutoscalerStatus = field(default_factory=CronHorizontalPodAutoscalerStatus)


class CronHpaRule(ApiStruct):
    schedule: str = ""
    target_replicas: int = 0


class CronHpaSpec(ApiStruct):
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    crons: tuple[CronHpaRule, ...] | None = None


class CronHpaStatus(ApiStruct):
    last_schedule_time: str | None = None


class CronHpa(ApiObject):
    """extensions.tkestack.io/v1 CronHPA. Source: tkestack/cron-hpa 16e15c0."""

    spec: CronHpaSpec = field(default_factory=CronHpaSpec)
    status: CronHpaStatus = field(default_factory=CronHpaStatus)


class KedaTrigger(ApiStruct):
    type: str = ""
    name: str = ""
    metric_type: str = ""
    metadata: dict[str, Any] | None = None
    authentication_ref: dict[str, Any] | None = None
    use_cached_metrics: bool = False


class ScaledObjectSpec(ApiStruct):
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    polling_interval: int | None = None
    cooldown_period: int | None = None
    initial_cooldown_period: int | None = None
    idle_replica_count: int | None = None
    min_replica_count: int | None = None
    max_replica_count: int | None = None
    triggers: tuple[KedaTrigger, ...] | None = None
    fallback: dict[str, Any] | None = None
    advanced: dict[str, Any] | None = None


class ScaledObjectStatus(ApiStruct):
    last_active_time: str | None = None
    external_metric_names: tuple[str, ...] | None = None
    health: dict[str, Any] | None = None


class ScaledObject(ApiObject):
    """keda.sh/v1alpha1. Source: KEDA 2.21."""

    spec: ScaledObjectSpec = field(default_factory=ScaledObjectSpec)
    status: ScaledObjectStatus = field(default_factory=ScaledObjectStatus)
