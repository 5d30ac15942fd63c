"""The devices of nodes that do not exist yet: copies of a similar node's devices, in pools of their own.

Source: Cluster Autoscaler 1.36, simulator/dynamicresources: node-local slices are copied with the node,
the name of each pool is made anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.resource import ResourceSlice
from kubetide.scheduling.devices.offers import DeviceId


def copy_of(given: ResourceSlice, node: str) -> ResourceSlice:
    """Return a slice for another node, with a pool of its own."""
    spec = given.spec
    return replace(
        given,
        metadata=ObjectMeta(name=f"{given.metadata.name}-{node}"),
        spec=replace(spec, node_name=node, pool=replace(spec.pool, name=f"{spec.pool.name}-{node}")),
    )


def local_slices(slices: Iterable[ResourceSlice], node: str) -> tuple[ResourceSlice, ...]:
    """Return the node-local slices of the newest generation of each pool, in order of name."""
    found = sorted((one for one in slices if one.spec.node_name == node), key=lambda one: one.metadata.name)
    newest: dict[tuple[str, str], int] = {}
    for one in found:
        pool = one.spec.driver, one.spec.pool.name
        newest[pool] = max(newest.get(pool, 0), one.spec.pool.generation)
    return tuple(
        one for one in found if one.spec.pool.generation == newest[one.spec.driver, one.spec.pool.name]
    )


def complete_pools(slices: Iterable[ResourceSlice]) -> dict[str, int]:
    """Return the number of complete pools (all slices present) per driver.

    Args:
        slices: Of one node, of the newest generation of each pool.

    Source: Cluster Autoscaler 1.36, DRA custom resources processor.
    """
    pieces: dict[tuple[str, str], list[ResourceSlice]] = {}
    for one in slices:
        pieces.setdefault((one.spec.driver, one.spec.pool.name), []).append(one)
    found: dict[str, int] = {}
    for (driver, _), own in pieces.items():
        if len(own) == own[0].spec.pool.resource_slice_count:
            found[driver] = found.get(driver, 0) + 1
    return found


def without_devices(
    slices: Iterable[ResourceSlice], taken: Collection[DeviceId]
) -> tuple[ResourceSlice, ...]:
    """Return the slices without some of their devices."""
    return tuple(_left(one, taken) for one in slices)


def _left(given: ResourceSlice, taken: Collection[DeviceId]) -> ResourceSlice:
    spec = given.spec
    devices = spec.devices or ()
    free = tuple(one for one in devices if (spec.driver, spec.pool.name, one.name) not in taken)
    return given if len(free) == len(devices) else replace(given, spec=replace(spec, devices=free))
