"""Instance types: what a machine has, what the catalogue says it has, and what it costs.

The shipped table holds public facts of a few general types: cores, memory, pods and on-demand
prices in US dollars an hour (us-east-1, list of 2026-07; us-central1 for n2). Prices go stale:
they serve to compare, not to bill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubetide.units.quantity import bytes_to_text, milli_to_text

GPU_RESOURCE = "nvidia.com/gpu"

_MI = 1 << 20
_GI = 1 << 30


@dataclass(frozen=True)
class InstanceType:
    """A machine type.

    Attributes:
        name: As in the label ``node.kubernetes.io/instance-type``.
        cpu_milli, memory_bytes, pods, gpus: What a machine has.
        price_per_hour: Price of one machine.
        reserved_cpu_milli, reserved_memory_bytes: What the system keeps; allocatable is the rest.
        catalogue_memory_bytes: What the catalogue says where it is wrong; None where it is right.
        arch: As in the label ``kubernetes.io/arch``.
    """

    name: str
    cpu_milli: int
    memory_bytes: int
    price_per_hour: float
    pods: int = 110
    gpus: int = 0
    reserved_cpu_milli: int = 0
    reserved_memory_bytes: int = 0
    catalogue_memory_bytes: int | None = None
    arch: str = "amd64"

    def __post_init__(self) -> None:
        listed = self.memory_bytes if self.catalogue_memory_bytes is None else self.catalogue_memory_bytes
        if self.reserved_cpu_milli >= self.cpu_milli or self.reserved_memory_bytes >= min(
            self.memory_bytes, listed
        ):
            raise ValueError(
                f"instance type {self.name}: reserves {self.reserved_cpu_milli}m CPU and "
                f"{self.reserved_memory_bytes} bytes of {self.cpu_milli}m and {min(self.memory_bytes, listed)}; "
                "nothing is left for pods: lower the reserve"
            )

    def capacity(self, *, listed: bool = False) -> dict[str, str]:
        """Capacity of a machine as quantities; ``listed`` gives what the catalogue says."""
        return self._quantities(0, 0, listed=listed)

    def allocatable(self, *, listed: bool = False) -> dict[str, str]:
        """Allocatable of a machine as quantities; ``listed`` gives what the catalogue says."""
        return self._quantities(self.reserved_cpu_milli, self.reserved_memory_bytes, listed=listed)

    def _quantities(self, cpu_reserved: int, memory_reserved: int, *, listed: bool) -> dict[str, str]:
        memory = self.memory_bytes
        if listed and self.catalogue_memory_bytes is not None:
            memory = self.catalogue_memory_bytes
        quantities = {
            "cpu": milli_to_text(self.cpu_milli - cpu_reserved),
            "memory": bytes_to_text(memory - memory_reserved),
            "pods": str(self.pods),
        }
        if self.gpus:
            quantities[GPU_RESOURCE] = str(self.gpus)
        return quantities


def reserved_cpu_milli(cores: int) -> int:
    """CPU reserved for the system: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest.

    Source: GKE and EKS documentation of node allocatable.
    """
    reserved = 60 + 10 * (cores >= 2) + 5 * max(min(cores, 4) - 2, 0) + 2.5 * max(cores - 4, 0)
    return int(reserved)


def reserved_memory_bytes(pods: int) -> int:
    """Memory reserved for the system: 255 MiB, 11 MiB for each possible pod, and 100 MiB that eviction holds free.

    Source: EKS node bootstrap, kubeReserved; kubelet default of evictionHard memory.available.
    """
    return (255 + 11 * pods + 100) * _MI


def _of(name: str, cores: int, gib: int, pods: int, price: float, gpus: int = 0) -> InstanceType:
    return InstanceType(
        name=name,
        cpu_milli=cores * 1000,
        memory_bytes=gib * _GI,
        price_per_hour=price,
        pods=pods,
        gpus=gpus,
        reserved_cpu_milli=reserved_cpu_milli(cores),
        reserved_memory_bytes=reserved_memory_bytes(pods),
    )


CATALOGUE: Mapping[str, InstanceType] = {
    entry.name: entry
    for entry in (
        _of("m5.large", 2, 8, 29, 0.096),
        _of("m5.xlarge", 4, 16, 58, 0.192),
        _of("m5.2xlarge", 8, 32, 58, 0.384),
        _of("m5.4xlarge", 16, 64, 234, 0.768),
        _of("m6i.large", 2, 8, 29, 0.096),
        _of("m6i.xlarge", 4, 16, 58, 0.192),
        _of("m6i.2xlarge", 8, 32, 58, 0.384),
        _of("c5.large", 2, 4, 29, 0.085),
        _of("c5.xlarge", 4, 8, 58, 0.17),
        _of("c5.2xlarge", 8, 16, 58, 0.34),
        _of("c5d.large", 2, 4, 29, 0.096),
        _of("c6i.large", 2, 4, 29, 0.085),
        _of("c6i.xlarge", 4, 8, 58, 0.17),
        _of("c6i.2xlarge", 8, 16, 58, 0.34),
        _of("r5.large", 2, 16, 29, 0.126),
        _of("r5.xlarge", 4, 32, 58, 0.252),
        _of("r5.2xlarge", 8, 64, 58, 0.504),
        _of("g4dn.xlarge", 4, 16, 29, 0.526, gpus=1),
        _of("n2-standard-2", 2, 8, 110, 0.0971),
        _of("n2-standard-4", 4, 16, 110, 0.1942),
        _of("n2-standard-8", 8, 32, 110, 0.3885),
        _of("n2-standard-16", 16, 64, 110, 0.7769),
    )
}
"""The shipped types by name."""
