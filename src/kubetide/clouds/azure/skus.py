"""Sizes of machines: the shipped list (``instance_types.csv``) and what is special of some.

Source: cluster-autoscaler cloudprovider/azure, static instance types and lists of sizes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec
from msgspec.structs import replace

from kubetide.objects.base import ApiStruct
from kubetide.ports.errors import CloudError

_PROMO = "_promo"


class InstanceType(ApiStruct):
    """A size; ``usd_per_hour`` is the list price of eastus, None where unknown."""

    name: str = ""
    vcpu: int = 0
    memory_mib: int = 0
    gpu: int = 0
    arch: str = "amd64"
    usd_per_hour: float | None = None


class _Special(msgspec.Struct, frozen=True):
    nvidia_label: frozenset[str]
    no_force_delete_isolated: frozenset[str]


@cache
def shipped_types() -> Mapping[str, InstanceType]:
    """Return the shipped list by name in lower case; it is only as new as this program."""
    text = (files(__package__) / "instance_types.csv").read_text(encoding="utf-8")
    found = (
        InstanceType(
            name=row["type"],
            vcpu=int(row["vcpu"]),
            memory_mib=int(row["memory_mib"]),
            gpu=int(row["gpu"]),
            arch=row["arch"],
            usd_per_hour=float(row["usd_per_hour"]) if row["usd_per_hour"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    )
    return {one.name.lower(): one for one in found}


def with_shipped(listed: Mapping[str, InstanceType]) -> Mapping[str, InstanceType]:
    """Return the sizes that the API lists, and the shipped ones that it does not, by name in lower case.

    The API has no prices, so these are the shipped ones.
    """
    shipped = shipped_types()
    priced = {
        name: replace(one, usd_per_hour=shipped[name].usd_per_hour)
        for name, one in listed.items()
        if name in shipped
    }
    return {**shipped, **listed, **priced}


@cache
def _special() -> _Special:
    return msgspec.json.decode((files(__package__) / "special_sizes.json").read_bytes(), type=_Special)


def find_type(sku: str, types: Mapping[str, InstanceType] | None = None) -> InstanceType:
    """Return the size of that name, in any case; a promotional one may stand for the ordinary. Raises CloudError.

    Args:
        sku: The name, ``Standard_D4s_v3``.
        types: The sizes there are, by name in lower case; the shipped list unless given.
    """
    known, name = shipped_types() if types is None else types, sku.lower()
    found = known.get(name) or known.get(name.replace(_PROMO, ""))
    if found is None:
        raise CloudError(f'instance type "{sku}" not supported')
    return found


def has_nvidia_label(sku: str) -> bool:
    """Return whether nodes of that size get the accelerator labels."""
    return sku.lower().removesuffix(_PROMO) in _special().nvidia_label


def is_fpga(sku: str) -> bool:
    """Return whether the size has FPGAs in place of GPUs."""
    return sku.lower().startswith("standard_np")


def may_force(sku: str, *, enabled: bool, dedicated_host: bool) -> bool:
    """Return whether machines of that size are deleted by force: never on dedicated hosts or isolated sizes."""
    return enabled and not dedicated_host and sku.lower() not in _special().no_force_delete_isolated
