"""resource.k8s.io/v1: devices, the classes and claims that ask for them, and who was given which."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject, Condition
from kubetide.objects.pod import NodeSelector

ScalarQuantity = str | int | float


class CelSelector(ApiStruct):
    expression: str = ""


class DeviceSelector(ApiStruct):
    cel: CelSelector | None = None


class DeviceClassSpec(ApiStruct):
    selectors: tuple[DeviceSelector, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(ApiObject):
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


# ── What drivers offer ──


class DeviceAttribute(ApiStruct):
    """One value: exactly one field is set."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")


class CapacityRange(ApiStruct):
    min: ScalarQuantity | None = None
    max: ScalarQuantity | None = None
    step: ScalarQuantity | None = None


class CapacityRequestPolicy(ApiStruct):
    default: ScalarQuantity | None = None
    valid_values: tuple[ScalarQuantity, ...] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(ApiStruct):
    value: ScalarQuantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct):
    value: ScalarQuantity = "0"


class CounterSet(ApiStruct):
    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(ApiStruct):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceTaint(ApiStruct):
    key: str = ""
    value: str = ""
    effect: str = ""


class Device(ApiStruct):
    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(ApiStruct):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(ApiStruct):
    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(ApiObject):
    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


# ── What pods ask for ──


class DeviceToleration(ApiStruct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class CapacityRequirements(ApiStruct):
    requests: Quantities | None = None


class ExactDeviceRequest(ApiStruct):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiStruct):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(ApiStruct):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(ApiStruct):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(ApiStruct):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None


class ResourceClaimSpec(ApiStruct):
    devices: DeviceClaim = field(default_factory=DeviceClaim)


class DeviceResult(ApiStruct):
    """One device that a claim was given."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = None
    consumed_capacity: Quantities | None = None


class DeviceResults(ApiStruct):
    results: tuple[DeviceResult, ...] | None = None


class AllocationResult(ApiStruct):
    devices: DeviceResults = field(default_factory=DeviceResults)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(ApiStruct):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(ApiStruct):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = None
    conditions: tuple[Condition, ...] | None = None


class ResourceClaimStatus(ApiStruct):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None


class ResourceClaim(ApiObject):
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(ApiStruct):
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(ApiObject):
    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)
