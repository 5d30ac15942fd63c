"""policy/v1 PodDisruptionBudget and scheduling.k8s.io/v1 PriorityClass."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject, Condition, LabelSelector


class PodDisruptionBudgetSpec(ApiStruct):
    min_available: str | int | None = None
    max_unavailable: str | int | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(ApiStruct):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] | None = None
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(ApiObject):
    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class PriorityClass(ApiObject):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
