"""What a node and a pod cost on Compute Engine, in USD (list prices, ``prices.json``).

A node: the table's price of its type, or CPUs, memory and ephemeral storage at the family's prices
(a spot node: times the family's factor); then its local SSDs, its boot disk and its GPUs. As
upstream, a node whose type is not in the table pays for its boot disk twice: as ephemeral storage
and as a disk.

Source: cluster-autoscaler cloudprovider/gce, price model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from kubetide.clouds.gce.machine_types import family_of, is_custom
from kubetide.clouds.gce.template import BOOT_DISK_SIZE, BOOT_DISK_TYPE, LOCAL_SSD_COUNT, LOCAL_SSD_FOR_PODS
from kubetide.objects.base import Quantities
from kubetide.ports.cloud import NVIDIA_GPU, PodPrices, market_of
from kubetide.ports.errors import CloudError
from kubetide.units.numbers import NumberError, parse_float
from kubetide.units.quantity import Quantity
from kubetide.units.time import Duration, minutes

_GIB = 1 << 30
GPU_LABEL = "cloud.google.com/gke-accelerator"
_SSD_LABEL = "cloud.google.com/gke-ephemeral-storage-local-ssd"
_DISK_LABEL = "cloud.google.com/gke-boot-disk"
_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class PriceTable(msgspec.Struct, frozen=True):
    """The tables of ``prices.json``: USD per hour, and per GiB and hour."""

    cpu_usd_per_hour: float
    memory_usd_per_gib_hour: float
    gpu_usd_per_hour: float
    preemptible_factor: float
    default_boot_disk_gib: int
    default_boot_disk_type: str
    boot_disk_usd_per_gib_hour: dict[str, float]
    local_ssd_gib: int
    local_ssd_usd_per_gib_hour: float
    spot_local_ssd_usd_per_gib_hour: float
    predefined_cpu: dict[str, float]
    predefined_memory: dict[str, float]
    predefined_preemptible_factor: dict[str, float]
    custom_cpu: dict[str, float]
    custom_memory: dict[str, float]
    custom_preemptible_factor: dict[str, float]
    instance: dict[str, float]
    preemptible_instance: dict[str, float]
    gpu: dict[str, float]
    preemptible_gpu: dict[str, float]


@cache
def price_table() -> PriceTable:
    """Return the shipped prices."""
    return msgspec.json.decode((files(__package__) / "prices.json").read_bytes(), type=PriceTable)


def node_price(
    labels: Mapping[str, str], annotations: Mapping[str, str], capacity: Quantities, duration: Duration
) -> float:
    """Return the price of a node for that long, in USD."""
    table, hours = price_table(), _hours(duration)
    sizes = {name: Quantity.parse(size) for name, size in capacity.items()}
    spot = market_of(labels) == "spot"
    kind = next((labels[label] for label in _TYPE_LABELS if label in labels), None)
    known = (table.preemptible_instance if spot else table.instance).get(kind or "")
    if known is None:
        base = _by_parts(sizes, kind or "", hours) * (_spot_factor(kind) if spot else 1.0)
    else:
        base = known * hours
    return (
        base
        + _local_ssds(labels, annotations, hours, spot=spot)
        + _boot_disk(labels, annotations, hours)
        + _gpus(labels.get(GPU_LABEL, ""), sizes, hours, spot=spot)
    )


def pod_prices() -> PodPrices:
    """Return what a pod's requests cost, in USD, wherever it runs."""
    table = price_table()
    return PodPrices(
        cpu_hour=table.cpu_usd_per_hour,
        gib_hour=table.memory_usd_per_gib_hour,
        storage_gib_hour=table.boot_disk_usd_per_gib_hour[table.default_boot_disk_type],
        gpu_hour=table.gpu_usd_per_hour,
    )


def _hours(duration: Duration) -> float:
    return math.ceil(duration / minutes(1)) / 60


def _family(kind: str) -> str:
    try:
        return family_of(kind)
    except CloudError:
        return ""


def _by_parts(sizes: Mapping[str, Quantity], kind: str, hours: float) -> float:
    table, family = price_table(), _family(kind)
    custom = is_custom(kind)
    cpu_price = (table.custom_cpu if custom else table.predefined_cpu).get(family, table.cpu_usd_per_hour)
    memory_price = (table.custom_memory if custom else table.predefined_memory).get(
        family, table.memory_usd_per_gib_hour
    )
    disk_price = table.boot_disk_usd_per_gib_hour[table.default_boot_disk_type]
    nothing = Quantity(0)
    price = sizes.get("cpu", nothing).milli_value() / 1000.0 * cpu_price * hours
    price += sizes.get("memory", nothing).value() / _GIB * memory_price * hours
    return price + sizes.get("ephemeral-storage", nothing).value() / _GIB * disk_price * hours


def _spot_factor(kind: str | None) -> float:
    if kind is None:
        return 1.0
    table = price_table()
    factors = table.custom_preemptible_factor if is_custom(kind) else table.predefined_preemptible_factor
    return factors.get(_family(kind), table.preemptible_factor)


def _local_ssds(
    labels: Mapping[str, str], annotations: Mapping[str, str], hours: float, *, spot: bool
) -> float:
    if labels.get(_SSD_LABEL) != "true" and annotations.get(LOCAL_SSD_FOR_PODS) != "true":
        return 0.0
    table = price_table()
    per_gib = table.spot_local_ssd_usd_per_gib_hour if spot else table.local_ssd_usd_per_gib_hour
    return _count(annotations.get(LOCAL_SSD_COUNT, "")) * table.local_ssd_gib * per_gib * hours


def _boot_disk(labels: Mapping[str, str], annotations: Mapping[str, str], hours: float) -> float:
    table = price_table()
    size = _integer(annotations.get(BOOT_DISK_SIZE, "")) or table.default_boot_disk_gib
    # An empty label hides the annotation, too.
    kind = labels.get(_DISK_LABEL, annotations.get(BOOT_DISK_TYPE, "")) or table.default_boot_disk_type
    return size * table.boot_disk_usd_per_gib_hour.get(kind, 0.0) * hours


def _gpus(kind: str, sizes: Mapping[str, Quantity], hours: float, *, spot: bool) -> float:
    count = sizes.get(NVIDIA_GPU, Quantity(0)).milli_value() / 1000.0
    table = price_table()
    prices = table.preemptible_gpu if spot else table.gpu
    return count * prices.get(kind, table.gpu_usd_per_hour) * hours


def _integer(text: str) -> int:
    return int(text) if _INTEGER.fullmatch(text) else 0


def _count(text: str) -> float:
    try:
        return parse_float(text)
    except NumberError:
        return 0.0
