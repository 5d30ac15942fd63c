"""The contract of CapacityBuffers: strategies, conditions, reasons and messages, spelled exactly."""

from __future__ import annotations

from typing import Final

ACTIVE: Final = "buffer.x-k8s.io/active-capacity"

READY: Final = "ReadyForProvisioning"
PROVISIONING: Final = "Provisioning"
LIMITED: Final = "LimitedByQuotas"

READY_REASON: Final = "AttributesSetSuccessfully"
READY_MESSAGE: Final = "ready"
NOT_READY_REASON: Final = "error"
NOT_READY: Final = "Buffer not ready for provisioning: "
NO_COUNT: Final = "couldn't get number of replicas for buffer: "
LIMITED_REASON: Final = "ResourceQuotasAllocated"
LIMITED_MESSAGE: Final = "Buffer replicas limited from {asked} to {allowed} due to quotas: {quotas}"
INJECTED_REASON: Final = "FakePodsInjected"
EMPTY_REASON: Final = "BufferIsEmpty"
EMPTY_MESSAGE: Final = "CapacityBuffer has zero replicas"
NOT_READY_FOR_REASON: Final = "NotReadyForProvisioning"
NOT_READY_FOR_MESSAGE: Final = "CapacityBuffer is not ready for provisioning"
NO_TEMPLATE_REASON: Final = "FailedToGetPodTemplate"
NO_TEMPLATE: Final = 'capacity buffer client can\'t get pod template: podtemplates "{name}" not found'

POD_TYPE_ANNOTATION: Final = "podType"
POD_TYPE: Final = "capacityBufferFakePod"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def template_name(buffer: str) -> str:
    """Return the name of the PodTemplate that a buffer's template is copied to; at most 253 characters."""
    before, behind = "capacitybuffer-", "-pod-template"
    return f"{before}{buffer[: 253 - len(before) - len(behind)]}{behind}"
