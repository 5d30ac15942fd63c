"""Instance types of EC2: what a machine has, and what it costs on demand.

The EC2 API says what types there are now; the shipped table (public facts of July 2026, prices of us-east-1 in
US dollars an hour) fills what the API leaves out, and serves alone when there is no API.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from kubetide.objects.base import Json

TABLE: Final = "shipped table of July 2026"
API: Final = "EC2 API"
PRICE_REGION: Final = "us-east-1"

_MIB: Final = 1 << 20
_ARM: Final = "arm64"


class InstanceType(NamedTuple):
    """A machine type; ``arch`` as in the label ``kubernetes.io/arch``, ``source`` is who said so."""

    name: str
    vcpu: int
    memory_mib: int
    gpus: int
    arch: str
    source: str = API
    price_per_hour: float | None = None
    """On demand in ``PRICE_REGION``; None when unknown."""

    @property
    def memory_bytes(self) -> int:
        """All of its memory."""
        return self.memory_mib * _MIB


def from_api(info: Json) -> InstanceType:
    """Return the type that one InstanceTypeInfo of DescribeInstanceTypes describes; what is absent is 0."""
    gpus = (info.get("GpuInfo") or {}).get("Gpus") or ()
    architectures = (info.get("ProcessorInfo") or {}).get("SupportedArchitectures") or ("",)
    name = info.get("InstanceType", "")
    listed = shipped_types().get(name)
    return InstanceType(
        name=name,
        vcpu=(info.get("VCpuInfo") or {}).get("DefaultVCpus") or 0,
        memory_mib=(info.get("MemoryInfo") or {}).get("SizeInMiB") or 0,
        gpus=sum(gpu.get("Count") or 0 for gpu in gpus),
        arch=node_arch(architectures[0]),
        price_per_hour=listed.price_per_hour if listed else None,
    )


def node_arch(architecture: str) -> str:
    """Return what a node calls an architecture of EC2: ``arm64`` or, for all others, ``amd64``."""
    if not architecture:
        return ""
    return _ARM if architecture == _ARM else "amd64"


@cache
def shipped_types() -> Mapping[str, InstanceType]:
    """Return the types of the shipped table by name."""
    text = files(__package__).joinpath("instance_types.csv").read_text(encoding="utf-8")
    return {
        row["type"]: InstanceType(
            name=row["type"],
            vcpu=int(row["vcpu"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["gpus"]),
            arch=node_arch(row["arch"]),
            source=TABLE,
            price_per_hour=float(row["usd_per_hour"]) if row["usd_per_hour"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    }


def with_shipped(found: Iterable[InstanceType]) -> dict[str, InstanceType]:
    """Return types by name: those that were found, and of the shipped table those that were not."""
    return {**shipped_types(), **{each.name: each for each in found}}
