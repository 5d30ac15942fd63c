"""Requests for capacity: ProvisioningRequest, CapacityBuffer, CapacityQuota, and the PodTemplates that they name.

Source: Cluster Autoscaler, apis of autoscaling.x-k8s.io (August 2026); core/v1.
"""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject, LabelSelector
from kubetide.objects.pod import PodTemplate


class PodTemplateObject(ApiObject):
    """core/v1 PodTemplate."""

    template: PodTemplate = field(default_factory=PodTemplate)


class StatusCondition(ApiStruct):
    """metav1.Condition."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class LocalReference(ApiStruct):
    name: str = ""


class PodSet(ApiStruct):
    pod_template_ref: LocalReference = field(default_factory=LocalReference)
    count: int = 0


class ProvisioningRequestSpec(ApiStruct):
    pod_sets: tuple[PodSet, ...] | None = None
    provisioning_class_name: str = ""
    parameters: dict[str, str] | None = None


class ProvisioningRequestStatus(ApiStruct):
    conditions: tuple[StatusCondition, ...] | None = None
    provisioning_class_details: dict[str, str] | None = None


class ProvisioningRequest(ApiObject):
    spec: ProvisioningRequestSpec = field(default_factory=ProvisioningRequestSpec)
    status: ProvisioningRequestStatus = field(default_factory=ProvisioningRequestStatus)


class ScalableReference(ApiStruct):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class CapacityBufferSpec(ApiStruct):
    provisioning_strategy: str | None = None
    pod_template_ref: LocalReference | None = None
    scalable_ref: ScalableReference | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Quantities | None = None


class CapacityBufferStatus(ApiStruct):
    pod_template_ref: LocalReference | None = None
    replicas: int | None = None
    pod_template_generation: int | None = None
    conditions: tuple[StatusCondition, ...] | None = None
    provisioning_strategy: str | None = None


class CapacityBuffer(ApiObject):
    spec: CapacityBufferSpec = field(default_factory=CapacityBufferSpec)
    status: CapacityBufferStatus = field(default_factory=CapacityBufferStatus)


class ResourceAmounts(ApiStruct):
    resources: Quantities | None = None


class CapacityQuotaSpec(ApiStruct):
    selector: LabelSelector | None = None
    limits: ResourceAmounts = field(default_factory=ResourceAmounts)


class CapacityQuotaStatus(ApiStruct):
    used: ResourceAmounts | None = None
    conditions: tuple[StatusCondition, ...] | None = None
    observed_generation: int = 0


class CapacityQuota(ApiObject):
    spec: CapacityQuotaSpec = field(default_factory=CapacityQuotaSpec)
    status: CapacityQuotaStatus = field(default_factory=CapacityQuotaStatus)


def condition_of(conditions: tuple[StatusCondition, ...] | None, kind: str) -> StatusCondition | None:
    """Return the condition of that type, or None."""
    return next((one for one in conditions or () if one.type == kind), None)


def is_true(conditions: tuple[StatusCondition, ...] | None, kind: str) -> bool:
    """Return whether there is a condition of that type with status True."""
    found = condition_of(conditions, kind)
    return found is not None and found.status == "True"
