"""What a new node of a managed instance group looks like, built from its instance template.

Source: cluster-autoscaler cloudprovider/gce, building a node from a template.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec import field

from kubetide.clouds.common.template import DEFAULT_PODS, generic_labels, template_node
from kubetide.clouds.gce import kube_env, reserved
from kubetide.clouds.gce.machine_types import MachineType
from kubetide.clouds.gce.references import region_of
from kubetide.objects.base import ApiStruct, Json
from kubetide.objects.node import Node
from kubetide.ports.cloud import NVIDIA_GPU
from kubetide.ports.errors import CloudError
from kubetide.units.quantity import Format, Quantity

_GIB = 1 << 30
_ANNOTATION = "cluster-autoscaler/gce/"
BOOT_DISK_TYPE = _ANNOTATION + "boot-disk-type"
BOOT_DISK_SIZE = _ANNOTATION + "boot-disk-size"
LOCAL_SSD_COUNT = _ANNOTATION + "local-ssd-count"
LOCAL_SSD_FOR_PODS = _ANNOTATION + "ephemeral-storage-local-ssd"


class DiskParams(ApiStruct):
    disk_size_gb: str | int | None = None
    disk_type: str = ""

    @property
    def size_gib(self) -> int:
        """The size of the disk; 0 where the template says none. Raises CloudError."""
        try:
            return int(self.disk_size_gb or 0)
        except ValueError as error:
            raise CloudError(f"diskSizeGb of a disk is {self.disk_size_gb!r}, not a number of GiB") from error


class Disk(ApiStruct):
    boot: bool | None = None
    type: str = ""
    initialize_params: DiskParams | None = None


class Accelerator(ApiStruct):
    accelerator_count: int = 0
    accelerator_type: str = ""


class MetadataItem(ApiStruct):
    key: str = ""
    value: str | None = None


class Metadata(ApiStruct):
    items: tuple[MetadataItem, ...] | None = None

    def value(self, key: str) -> str | None:
        """Return the item of that key, None where there is none."""
        return next((one.value or "" for one in self.items or () if one.key == key), None)

    def lacks_value(self, key: str) -> bool:
        """Return whether there is an item of that key, and it has no value."""
        return next((one.value is None for one in self.items or () if one.key == key), False)


class ReservationAffinity(ApiStruct):
    consume_reservation_type: str = ""


class TemplateProperties(ApiStruct):
    machine_type: str = ""
    labels: dict[str, str] | None = None
    min_cpu_platform: str = ""
    reservation_affinity: ReservationAffinity | None = None
    disks: tuple[Disk, ...] | None = None
    guest_accelerators: tuple[Accelerator, ...] | None = None
    metadata: Metadata | None = None
    scheduling: Json | None = None
    advanced_machine_features: Json | None = None


class InstanceTemplate(ApiStruct):
    """The API's InstanceTemplate, as far as a node depends on it."""

    name: str = ""
    properties: TemplateProperties | None = None


class SystemInfo(ApiStruct):
    """Operating system, distribution and architecture of a template's nodes."""

    os: str = "linux"
    distribution: str = "cos"
    arch: str = "amd64"


class TemplateEnv(ApiStruct):
    """A template's properties and its kube-env."""

    properties: TemplateProperties = field(default_factory=TemplateProperties)
    env: dict[str, str] = field(default_factory=dict)


def environment(template: InstanceTemplate) -> TemplateEnv:
    """Return the template's properties with its kube-env. Raises CloudError."""
    properties = template.properties
    if properties is None or properties.metadata is None:
        raise CloudError(f"instance template {template.name}: no metadata, and so no kube-env")
    if properties.metadata.lacks_value("kube-env"):
        raise CloudError(f"instance template {template.name}: no kube-env content in metadata")
    return TemplateEnv(
        properties=properties,
        env=kube_env.parse_kube_env(properties.metadata.value("kube-env") or ""),
    )


def system_info(env: Mapping[str, str]) -> SystemInfo:
    """Return what runs on the nodes. Raises CloudError where the operating system is unknown."""
    os = kube_env.operating_system(env)
    if not os:
        raise CloudError("could not obtain os from kube-env from template metadata")
    try:
        arch = kube_env.architecture(env)
    except CloudError:
        arch = "amd64"
    return SystemInfo(os=os, distribution=kube_env.distribution(env) or "cos", arch=arch)


def build_node(template: InstanceTemplate, machine: MachineType, zone: str, group: str = "") -> Node:
    """Return the node that the template makes on that machine type in that zone. Raises CloudError."""
    read = environment(template)
    env, properties = read.env, read.properties
    system = system_info(env)
    annotations = _annotations(read)
    capacity = _capacity(read, machine, system, _ephemeral_bytes(read))
    labels = kube_env.labels(env)
    taints = kube_env.taints(env)
    generic = generic_labels(
        arch=system.arch,
        os=system.os,
        instance_type=properties.machine_type,
        region=region_of(zone),
        zone=zone,
    )
    return template_node(
        group,
        labels={**labels, **generic, "topology.gke.io/zone": zone},
        taints=taints,
        capacity={key: str(size) for key, size in capacity.items()},
        allocatable={key: str(size) for key, size in _allocatable(env, capacity).items()},
        annotations=annotations,
    )


def _boot_disk(properties: TemplateProperties) -> DiskParams | None:
    boot = (one.initialize_params for one in properties.disks or () if one.boot)
    return next((params for params in boot if params is not None), None)


def _attached_ssds(properties: TemplateProperties) -> int:
    return sum(
        one.type == "SCRATCH"
        and one.initialize_params is not None
        and one.initialize_params.disk_type == "local-ssd"
        for one in properties.disks or ()
    )


def _ephemeral_bytes(read: TemplateEnv) -> int | None:
    """Return the raw bytes of the ephemeral storage, None where the node has none. Raises CloudError."""
    failed = "could not fetch ephemeral storage from instance template: "
    if read.properties.disks is None:
        raise CloudError(f"{failed}instance properties disks is nil")
    used = kube_env.local_ssds_for_pods(read.env)
    if used > 0:
        if _attached_ssds(read.properties) < used:
            raise CloudError(
                f"{failed}actual local SSD count is lower than ephemeral_storage_local_ssd_count"
            )
        return used * reserved.LOCAL_SSD_GIB * _GIB
    boot = _boot_disk(read.properties)
    if boot is None or not kube_env.is_boot_disk_for_pods(read.env):
        return None
    return boot.size_gib * _GIB


def _capacity(
    read: TemplateEnv, machine: MachineType, system: SystemInfo, ephemeral: int | None
) -> dict[str, Quantity]:
    kernel = reserved.kernel_memory(
        machine.memory_bytes, os=system.os, distribution=system.distribution, arch=system.arch
    )
    capacity = {
        "pods": Quantity(DEFAULT_PODS),
        "cpu": Quantity(machine.cpu),
        "memory": Quantity(machine.memory_bytes - kernel),
    }
    accelerators = read.properties.guest_accelerators or ()
    if accelerators:
        count = sum(
            one.accelerator_count for one in accelerators if one.accelerator_type.startswith("nvidia-")
        )
        capacity[NVIDIA_GPU] = Quantity(count)
    if ephemeral:
        used = kube_env.local_ssds_for_pods(read.env)
        taken = (
            reserved.local_ssd_bytes(used, distribution=system.distribution)
            if used > 0
            else reserved.boot_disk_bytes(ephemeral, distribution=system.distribution, arch=system.arch)
        )
        capacity["ephemeral-storage"] = Quantity(max(ephemeral - taken, 0))
    with suppress(CloudError):  # a list that cannot be read adds nothing, as upstream's
        capacity.update(kube_env.extended_resources(read.env))
    return capacity


def _allocatable(env: Mapping[str, str], capacity: Mapping[str, Quantity]) -> dict[str, Quantity]:
    try:
        set_aside = kube_env.kube_reserved(kube_env.kube_reserved_text(env))
    except CloudError:
        return dict(capacity)
    evicted = kube_env.eviction(env)
    allocatable: dict[str, Quantity] = {}
    for key, size in capacity.items():
        left = size - set_aside[key] if key in set_aside else size
        if key == "memory":
            left = Quantity(left.value() - evicted.memory_bytes, format=Format.BINARY_SI)
        elif key == "ephemeral-storage":
            # The kubelet's threshold is a part of the whole file system, not of what is left for pods.
            kept = int(size.value() * evicted.storage_ratio)
            left = Quantity(left.value() - kept, format=Format.BINARY_SI)
        allocatable[key] = left
    return allocatable


def _annotations(read: TemplateEnv) -> dict[str, str]:
    annotations: dict[str, str] = {}
    ssds = _attached_ssds(read.properties)
    if ssds:
        annotations[LOCAL_SSD_COUNT] = str(ssds)
    boot = _boot_disk(read.properties)
    if boot is not None:
        annotations[BOOT_DISK_TYPE] = boot.disk_type
        annotations[BOOT_DISK_SIZE] = str(boot.size_gib)
    if not kube_env.is_boot_disk_for_pods(read.env):
        annotations[LOCAL_SSD_FOR_PODS] = "true"
    return annotations
