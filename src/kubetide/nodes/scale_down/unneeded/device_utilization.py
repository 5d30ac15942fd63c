"""Utilization of a node's local device pools.

Source: Cluster Autoscaler 1.36, simulator/dynamicresources/utils: whole devices count by number; of
devices that share counters, the fullest counter of each set; both weighted by how many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kubetide.objects.resource import Counter, Device, ResourceSlice
from kubetide.scheduling.devices.offers import DeviceId, nano
from kubetide.units.quantity import QuantityError

_Counters = dict[str, dict[str, int]]


class UtilizationError(ValueError):
    """The node does not state what it offers, so its utilization is unknown."""


def fullest_pool(slices: Sequence[ResourceSlice], held: Collection[DeviceId]) -> tuple[str, float]:
    """Return ``driver/pool`` of the fullest pool and its used share; among equals the last by name.

    Args:
        slices: A node's own, of the newest generation of each pool; not empty.
        held: Devices that claims have, others than the node's too.

    Raises: UtilizationError when slices of a pool are missing, or amounts in it cannot be read.
    """
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for one in slices:
        pools.setdefault((one.spec.driver, one.spec.pool.name), []).append(one)
    shares: list[tuple[float, str]] = []
    for (driver, pool), pieces in sorted(pools.items()):
        declared = pieces[0].spec.pool
        if len(pieces) != declared.resource_slice_count:
            said = f"newest generation: {declared.generation}, slice count: {declared.resource_slice_count}"
            raise UtilizationError(f'pool "{pool}" error: {said} - found only {len(pieces)} slices')
        names = {name for of, where, name in held if (of, where) == (driver, pool)}
        try:
            shares.append((_share(pieces, names), f"{driver}/{pool}"))
        except QuantityError as error:
            raise UtilizationError(f'pool "{pool}" error: {error}') from None
    share, name = max(shares)
    return name, share


def _share(slices: Sequence[ResourceSlice], held: Collection[str]) -> float:
    devices = [device for one in slices for device in one.spec.devices or ()]
    whole = [one for one in devices if not one.consumes_counters]
    parts = [one for one in devices if one.consumes_counters]
    used_whole = [one for one in whole if one.name in held]
    used_parts = [one for one in parts if one.name in held]
    of_whole = len(used_whole) / len(whole) if whole else 0.0
    if not used_parts:
        return of_whole
    sets = {counters.counter_set for one in parts for counters in one.consumes_counters or ()}
    of_parts = _of_counters(slices, used_parts, len(sets))
    if not used_whole:
        return of_parts
    total = float(len(sets) + len(whole))
    return of_parts * (len(sets) / total) + of_whole * (len(whole) / total)


def _of_counters(slices: Iterable[ResourceSlice], used: Iterable[Device], sets: int) -> float:
    """Return the fullest counter of each set, on average over the sets that devices have parts of."""
    offered: _Counters = {}
    for one in slices:
        for counters in one.spec.shared_counters or ():
            _add(offered, counters.name, counters.counters)
    taken: _Counters = {}
    for device in used:
        for consumed in device.consumes_counters or ():
            _add(taken, consumed.counter_set, consumed.counters)
    found = 0.0
    for name, amounts in offered.items():
        of_set = taken.get(name, {})
        shares = (of_set.get(counter, 0) / amount for counter, amount in amounts.items() if amount)
        found += max((*shares, 0.0)) / sets
    return found


def _add(counters: _Counters, name: str, more: dict[str, Counter] | None) -> None:
    amounts = counters.setdefault(name, {})
    for counter, one in (more or {}).items():
        amounts[counter] = amounts.get(counter, 0) + nano(one.value)
