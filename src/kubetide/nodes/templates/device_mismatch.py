"""Differences between the devices of nodes and those expected by their group's template.

It is reported, and nothing is decided by it: what nodes have is in the snapshot, and templates learn from them.

Source: Cluster Autoscaler (July 2026), node template resources mismatch. Devices are compared by driver,
by how many of a pool have the same attributes; names of pools and values of attributes do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubetide.nodes.state import State
from kubetide.objects.resource import ResourceSlice

_Likes = dict[str, Counter[tuple[frozenset[str], int]]]
"""By driver the groups of like devices of each pool: their attributes, and how many there are."""

_NONE: Counter[tuple[frozenset[str], int]] = Counter()


@dataclass(slots=True)
class Mismatch:
    """Differing devices of one driver, over all nodes."""

    missing: int = 0
    """Expected, and there is nothing of the driver left that they could be."""
    extra: int = 0
    """There, and nothing of the driver is expected that they could be."""
    mismatch: int = 0
    """Expected, with another number of devices or other attributes."""


def device_mismatches(state: State) -> dict[str, Mismatch]:
    """Return the differences by driver, for drivers that have any; nodes that are not ready are left out."""
    found: dict[str, Mismatch] = {}
    if state.snapshot.facts.devices is None:
        return found
    devices = state.node_devices()
    for group, names in state.nodes_by_group().items():
        expected = _likes(_expected(state, group, names))
        for name in names:
            there = devices.local(name)
            if (expected or there) and not state.health(name).unready:
                _compare(expected, there, found)
    return found


def compare(
    expected: Iterable[ResourceSlice], there: Iterable[ResourceSlice], into: dict[str, Mismatch]
) -> None:
    """Add the differences between one node and its template; a driver that is not ready is left out."""
    _compare(_likes(expected), tuple(there), into)


def _compare(expected: _Likes, there: tuple[ResourceSlice, ...], into: dict[str, Mismatch]) -> None:
    found = _likes(there)
    if found == expected:
        return
    for driver in sorted({*expected, *found} - _in_flux(there)):
        missing = expected.get(driver, _NONE) - found.get(driver, _NONE)
        extra = found.get(driver, _NONE) - expected.get(driver, _NONE)
        if not missing and not extra:
            continue
        # Whatever of a driver is left on both sides is taken for the same devices, changed.
        changed = min(missing.total(), extra.total())
        one = into.setdefault(driver, Mismatch())
        one.mismatch += changed
        one.missing += missing.total() - changed
        one.extra += extra.total() - changed


def _expected(state: State, group: str, names: Sequence[str]) -> tuple[ResourceSlice, ...]:
    """Return what a new node of the group is expected to publish; ``names`` are its nodes, in name order."""
    devices, seen = state.node_devices(), state.memory.templates.get(group)
    if seen is not None:
        # What is remembered lacks the devices that the node's own pods have; the node itself has them all.
        return devices.local(seen.from_node) or seen.slices
    template = state.groups[group].template
    if template is not None:
        return template.slices or ()
    return devices.local(names[0]) if names else ()


def _likes(slices: Iterable[ResourceSlice]) -> _Likes:
    pools: dict[tuple[str, str], dict[frozenset[str], int]] = {}
    for one in slices:
        counts = pools.setdefault((one.spec.driver, one.spec.pool.name), {})
        for device in one.spec.devices or ():
            kind = frozenset(device.attributes or ())
            counts[kind] = counts.get(kind, 0) + 1
    found: _Likes = {}
    for (driver, _), counts in pools.items():
        if counts:
            found.setdefault(driver, Counter()).update(counts.items())
    return found


def _in_flux(slices: Iterable[ResourceSlice]) -> set[str]:
    """Return the drivers of which pieces of a pool are still to come."""
    pieces = Counter(
        (one.spec.driver, one.spec.pool.name, one.spec.pool.resource_slice_count) for one in slices
    )
    return {driver for (driver, _, size), count in pieces.items() if count != size}
