"""What a new node of a scale set looks like.

Source: cluster-autoscaler cloudprovider/azure, building a node from a scale set.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.clouds.azure import tags as tag_reading
from kubetide.clouds.azure.model import OsDisk, ScaleSet
from kubetide.clouds.azure.settings import OPTIONS
from kubetide.clouds.azure.skus import InstanceType, find_type, has_nvidia_label, is_fpga
from kubetide.clouds.common.old_labels import OLD_ARCH, OLD_INSTANCE_TYPE, OLD_OS, OLD_REGION, OLD_ZONE
from kubetide.clouds.common.options import read_options
from kubetide.clouds.common.readings import GroupReading
from kubetide.clouds.common.template import (
    DEFAULT_PODS,
    generic_labels,
    kube_proxy,
    template_node,
)
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node
from kubetide.ports.cloud import NVIDIA_GPU, NodeTemplate, Offering
from kubetide.ports.errors import CloudError
from kubetide.units.quantity import Format, Quantity

_MIB, _GIB = 1 << 20, 1 << 30
_FPGA = "xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_2_1-0"
_DISK_ZONE = "topology.disk.csi.azure.com/zone"
_AKS = "kubernetes.azure.com/"
GPU_LABEL = _AKS + "accelerator"
NO_ZONE = "0"
"""The zone of nodes whose set has none, as their label says it."""


def zones_of(scale_set: ScaleSet) -> tuple[str, ...]:
    """Return the zones as nodes name them, ``westeurope-1``; empty for a set without zones."""
    location = (scale_set.location or "").lower()
    return tuple(f"{location}-{zone}" for zone in scale_set.zones or ())


def build_node(
    scale_set: ScaleSet,
    *,
    predict_labels: bool = True,
    types: Mapping[str, InstanceType] | None = None,
) -> Node:
    """Return the node that the set makes next. Raises CloudError.

    Of several zones, in one of which the node will be, it is in the first.

    Args:
        scale_set: The set.
        predict_labels: Whether the labels that AKS gives nodes are added.
        types: The sizes there are; the shipped list unless given.
    """
    sku = scale_set.size
    if not sku:
        raise CloudError(f"VMSS {scale_set.name} has no SKU")
    if not scale_set.location:
        raise CloudError(f"VMSS {scale_set.name} has no location")
    size = find_type(sku, types)
    tags = scale_set.tags or {}
    labels: dict[str, str] = {
        key: value or "" for key, value in tags.items() if not key.startswith(tag_reading.OWN)
    }
    labels |= _generic(scale_set, sku, size)
    labels |= tag_reading.labels(tags)
    if predict_labels:
        labels |= _predicted(scale_set, sku, tags)
    capacity: Quantities = {key: str(amount) for key, amount in _capacity(scale_set, sku, size).items()}
    return template_node(scale_set.name, labels=labels, taints=tag_reading.taints(tags), capacity=capacity)


def make_template(
    scale_set: ScaleSet, *, predict_labels: bool, types: Mapping[str, InstanceType] | None
) -> NodeTemplate:
    """Return what a node of the set looks like, and who says so; arguments as ``build_node``. Raises CloudError."""
    return NodeTemplate(
        node=build_node(scale_set, predict_labels=predict_labels, types=types),
        pods=(kube_proxy(scale_set.name),),
        source=f"scale set {scale_set.name}, size {scale_set.size}",
    )


def described(
    scale_set: ScaleSet,
    reading: GroupReading,
    *,
    predict_labels: bool,
    types: Mapping[str, InstanceType] | None,
) -> GroupReading:
    """Return a group with what its set says of its machines, whether or not there are any; as ``build_node``."""
    tags = scale_set.tags or {}
    options, warnings = read_options(tag_reading.raw_options(tags), OPTIONS)
    reading = reading._replace(options=options, warnings=(*tag_reading.problems(tags, OPTIONS), *warnings))
    try:
        template = make_template(scale_set, predict_labels=predict_labels, types=types)
        return reading._replace(template=template, offerings=offerings(scale_set, types))
    except CloudError as error:
        return reading._replace(template_error=str(error))


def offerings(scale_set: ScaleSet, types: Mapping[str, InstanceType] | None) -> tuple[Offering, ...]:
    """Return the ways by which the set's next machine may come, one a zone. Raises CloudError."""
    sku = scale_set.size
    zones = zones_of(scale_set) or (NO_ZONE,)
    # The shipped prices are those of machines on demand.
    price = None if scale_set.is_spot else find_type(sku, types).usd_per_hour
    return tuple(
        Offering(
            instance_type=sku,
            zone=zone,
            market="spot" if scale_set.is_spot else "on-demand",
            share=1 / len(zones),
            price_per_hour=price,
        )
        for zone in zones
    )


def _os_disk(scale_set: ScaleSet) -> OsDisk | None:
    profile = scale_set.properties.virtual_machine_profile
    return profile.storage_profile.os_disk if profile and profile.storage_profile else None


def _os(scale_set: ScaleSet) -> str:
    profile = scale_set.properties.virtual_machine_profile
    windows = profile and profile.os_profile and profile.os_profile.windows_configuration is not None
    return "windows" if windows else "linux"


def _generic(scale_set: ScaleSet, sku: str, size: InstanceType) -> dict[str, str]:
    system, region = _os(scale_set), (scale_set.location or "").lower()
    zones = zones_of(scale_set)
    zone = zones[0] if zones else NO_ZONE
    return {
        **generic_labels(arch=size.arch, os=system, instance_type=sku, region=region, zone=zone),
        OLD_ARCH: size.arch,
        OLD_OS: system,
        OLD_INSTANCE_TYPE: sku,
        OLD_REGION: region,
        OLD_ZONE: zone,
        _DISK_ZONE: zones[0] if zones else "",
    }


def _predicted(scale_set: ScaleSet, sku: str, tags: tag_reading.Tags) -> dict[str, str]:
    labels: dict[str, str] = {}
    pool = tags.get("aks-managed-poolName") or tags.get("poolName")
    if pool:
        labels["agentpool"] = labels[_AKS + "agentpool"] = pool
    disk = _os_disk(scale_set)
    if disk is not None:
        is_local = disk.diff_disk_settings is not None and disk.diff_disk_settings.option == "Local"
        labels["storageprofile"] = labels[_AKS + "storageprofile"] = "ephemeral" if is_local else "managed"
        tier = disk.managed_disk.storage_account_type if disk.managed_disk else None
        if tier:
            labels["storagetier"] = labels[_AKS + "storagetier"] = tier
    if has_nvidia_label(sku):
        labels["accelerator"] = labels[GPU_LABEL] = "nvidia"
    return labels


def _capacity(scale_set: ScaleSet, sku: str, size: InstanceType) -> dict[str, Quantity]:
    capacity = {
        "pods": Quantity(DEFAULT_PODS),
        "cpu": Quantity(size.vcpu),
        "memory": Quantity(size.memory_mib * _MIB),
        _FPGA if is_fpga(sku) else NVIDIA_GPU: Quantity(size.gpu),
    }
    disk = _os_disk(scale_set)
    if disk is not None and disk.disk_size_gb is not None:
        capacity["ephemeral-storage"] = Quantity(disk.disk_size_gb * _GIB, format=Format.DECIMAL_SI)
    return {**capacity, **tag_reading.resources(scale_set.tags or {})}
