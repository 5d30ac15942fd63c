"""Machine types that their name alone describes: ``[FAMILY-]custom-CPU-MEMORYMIB``, with anything behind it."""

from __future__ import annotations

import re

from kubetide.objects.base import ApiStruct
from kubetide.ports.errors import CloudError

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_CUSTOM = "custom"
_SHARED_CORES = {"micro", "small", "medium"}
_MIB = 1 << 20


class MachineType(ApiStruct):
    """A machine type of a zone: whole CPUs, memory in bytes, GPUs that each of its machines has, and ``ARM64`` or ``X86_64``."""

    name: str = ""
    cpu: int = 0
    memory_bytes: int = 0
    accelerators: int = 0
    architecture: str = ""


def is_custom(name: str) -> bool:
    """Return whether the type's name states its CPUs and memory."""
    parts = name.split("-")
    return len(parts) > 1 and _CUSTOM in parts[:2]


def family_of(name: str) -> str:
    """Return the machine family, ``n1`` for the first custom and shared-core types. Raises CloudError."""
    family, dash, _ = name.partition("-")
    if not dash:
        raise CloudError(f'unable to parse machine type "{name}"')
    return "n1" if family in {"custom", "f1", "g1"} else family


def parse_custom(name: str) -> MachineType:
    """Return what a custom type's name states. Raises CloudError.

    Source: cluster-autoscaler cloudprovider/gce, names of custom machine types.
    """
    if not is_custom(name):
        raise CloudError(f'"{name}" is not a valid custom machine type')
    parts = name.split("-")
    sizes = parts[parts.index(_CUSTOM) + 1 :]
    if len(sizes) < 2:
        raise CloudError(f'unable to parse custom machine type "{name}"')
    cpu, memory = sizes[:2]
    if family_of(name) == "e2" and cpu in _SHARED_CORES:
        cpu = "2"
    return MachineType(
        name=name,
        cpu=_whole(cpu, "CPU", name),
        memory_bytes=_whole(memory, "memory", name) * _MIB,
    )


def _whole(text: str, what: str, name: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise CloudError(
            f'unable to parse {what} "{text}" from machine type "{name}": '
            f'strconv.ParseInt: parsing "{text}": invalid syntax'
        )
    return int(text)
