"""Devices offered to a node: pools built from the ResourceSlices that reach it.

Source: dynamic-resource-allocation v1.36, incubating allocator (pools).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from kubetide.objects.node import Node
from kubetide.objects.pod import NodeSelector
from kubetide.objects.resource import Device, ResourceSlice
from kubetide.scheduling.devices.problems import ClaimError
from kubetide.scheduling.devices.selectors import SelectorError, Variables, variables_of
from kubetide.scheduling.pods.exact_key import exact_key
from kubetide.scheduling.pods.node_selection import NodeSelection, compile_selection, malformed
from kubetide.units.quantity import Quantity

DeviceId = tuple[str, str, str]
"""Driver, pool and name."""

PoolId = tuple[str, str]
"""Driver and name."""

Counters = dict[str, dict[str, int]]
"""Amounts in billionths, by counter set and counter."""


class Offer:
    """One device of a slice, with facts computed once.

    Attributes:
        piece: The slice that it stands in.
        reach: Which nodes have the device, where its slice leaves that to the devices; else None.
    """

    def __init__(self, piece: Slice, device: Device) -> None:
        spec = piece.spec
        self.piece = piece
        self.device = device
        self.driver = spec.driver
        self.id: DeviceId = (spec.driver, spec.pool.name, device.name)
        self.shared = bool(device.allow_multiple_allocations)
        self.reach: NodeReach | None = None
        if spec.per_device_node_selection:
            self.reach = NodeReach(
                device.node_name, all_nodes=device.all_nodes, selector=device.node_selector
            )
        self.counters: Counters = {}
        for consumed in device.consumes_counters or ():
            amounts = self.counters.setdefault(consumed.counter_set, {})
            for name, counter in (consumed.counters or {}).items():
                amounts[name] = amounts.get(name, 0) + nano(counter.value)

    @cached_property
    def content(self) -> bytes:
        """All that selectors read: selectors treat equal devices alike."""
        one = self.device
        return exact_key((self.driver, one.attributes, one.capacity, one.allow_multiple_allocations))

    @cached_property
    def kind(self) -> bytes:
        """Everything that may distinguish a free device from another of its pool, except name and position."""
        return exact_key((self.content, msgspec.structs.replace(self.device, name="")))

    @cached_property
    def variables(self) -> Variables | str:
        """The variables of CEL expressions, or the error of the device."""
        try:
            return variables_of(self.driver, self.device)
        except SelectorError as error:
            return str(error)


class Slice:
    """A ResourceSlice whose devices are offers.

    Attributes:
        number: Unique among all that its ledger ever had.

    Raises: QuantityError for an amount in it that cannot be read.
    """

    def __init__(self, given: ResourceSlice, number: int) -> None:
        _read_amounts(given)
        self.number = number
        self.name = given.metadata.name
        self.spec = given.spec
        self.pool_id: PoolId = (given.spec.driver, given.spec.pool.name)
        self.reach = NodeReach(
            given.spec.node_name, all_nodes=given.spec.all_nodes, selector=given.spec.node_selector
        )
        self.offers = tuple(Offer(self, device) for device in given.spec.devices or ())

    @property
    def of_one_node(self) -> str:
        """The node that owns the slice; empty for a slice that every node must check."""
        return "" if self.spec.shared_counters else self.spec.node_name or ""

    def reaches(self, node: Node) -> bool:
        """Return whether the slice applies to a node. Raises ClaimError for an unreadable selector."""
        spec = self.spec
        if spec.shared_counters:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return _matches(self.reach, node, f"slice {self.name}")
        return any(
            one.reach is not None and _matches(one.reach, node, f"device {one.id[2]} in slice {self.name}")
            for one in self.offers
        )


def _matches(reach: NodeReach, node: Node, where: str) -> bool:
    if reach.problem:
        said = f"failed to perform node selection for {where}: failed to parse node selector: {reach.problem}"
        raise ClaimError(f"gather pool information: {said}")
    return reach.matches(node)


class Pool:
    """The devices of one pool for one node, in search order.

    Attributes:
        incomplete: Whether slices are still missing, so that nothing is given out of it.
        invalid: Why nothing is given out of it; empty when it is sound.
        elsewhere: Devices of the pool that only other nodes reach; their counters count.
    """

    def __init__(self, pool_id: PoolId, *, incomplete: bool = False, invalid: str = "") -> None:
        self.id = pool_id
        self.incomplete = incomplete
        self.invalid = invalid
        self.slices: tuple[tuple[Offer, ...], ...] = ()
        self.elsewhere: tuple[Offer, ...] = ()
        self.counters: Counters = {}

    @property
    def waits_for_binding(self) -> bool:
        """Whether any device has binding conditions; such pools are searched last."""
        return any(o.device.binding_conditions is not None for piece in self.slices for o in piece)


def nano(value: str | float) -> int:
    """Return a quantity in billionths. Raises QuantityError."""
    return Quantity.parse(value).exact_nano()


def _read_amounts(given: ResourceSlice) -> None:
    """Read every amount once, so that none is in the way later. Raises QuantityError."""
    for counters in given.spec.shared_counters or ():
        for counter in (counters.counters or {}).values():
            nano(counter.value)
    for device in given.spec.devices or ():
        for capacity in (device.capacity or {}).values():
            policy = capacity.request_policy
            valid = policy.valid_range if policy else None
            amounts = [capacity.value, *((policy.valid_values or ()) if policy else ())]
            optional = [policy.default if policy else None]
            optional += [valid.min, valid.max, valid.step] if valid else []
            for amount in (*amounts, *(one for one in optional if one is not None)):
                nano(amount)


class NodeReach:
    """The nodes that something applies to: one by name, all, or those of a selector; none if nothing is set."""

    def __init__(
        self, name: str | None = None, *, all_nodes: bool | None = None, selector: NodeSelector | None = None
    ) -> None:
        self.name = name or ""
        self.everywhere = bool(all_nodes) and not self.name
        self.selector = selector
        self._chosen: NodeSelection | None = None
        self.problem = ""
        if not self.name and not self.everywhere and selector is not None:
            self.problem = malformed(selector)
            self._chosen = compile_selection(None, selector)

    def matches(self, node: Node) -> bool:
        """Return whether it applies to a node; an unreadable selector applies to none."""
        if self.name:
            return node.metadata.name == self.name
        if self.everywhere:
            return True
        if self._chosen is None or self.problem:
            return False
        return self._chosen.holds(node.metadata.labels or {}, node.metadata.name)


def gather_pools(reached: Iterable[Slice], every: Sequence[Slice]) -> list[Pool]:
    """Return the pools that a node can use, in search order.

    Args:
        reached: The slices that matter for the node.
        every: All slices of the cluster, to find out whether a pool is complete.
    """
    found: dict[PoolId, list[Slice]] = {}
    for piece in reached:
        known = found.get(piece.pool_id)
        newer = known is None or piece.spec.pool.generation > known[0].spec.pool.generation
        if newer or known is None:
            found[piece.pool_id] = [piece]
        elif piece.spec.pool.generation == known[0].spec.pool.generation:
            known.append(piece)
    pools = [pool for pool in (_pool(one, pieces, every) for one, pieces in found.items()) if pool]
    return sorted(pools, key=lambda pool: (pool.waits_for_binding, pool.id))


def _pool(pool_id: PoolId, pieces: list[Slice], every: Sequence[Slice]) -> Pool | None:
    """Put a pool together; None when a newer generation replaces it that has nothing for the node."""
    expected = pieces[0].spec.pool.resource_slice_count
    whole = pieces
    if len(pieces) != expected:
        same = [one for one in every if one.pool_id == pool_id]
        generation = pieces[0].spec.pool.generation
        if any(one.spec.pool.generation > generation for one in same):
            return None
        whole = [one for one in same if one.spec.pool.generation == generation]
        if len(whole) != expected:
            return Pool(pool_id, incomplete=True)
    pieces = sorted(pieces, key=lambda one: one.name)
    names = {one.name for one in pieces}
    elsewhere = [one for one in whole if one.name not in names]
    return _checked(pool_id, pieces, elsewhere)


def _checked(pool_id: PoolId, pieces: list[Slice], elsewhere: list[Slice]) -> Pool:
    pool = Pool(pool_id)
    of_devices = [one for one in pieces if not one.spec.shared_counters]
    seen: dict[str, None] = {}
    for offer in (offer for piece in of_devices for offer in piece.offers):
        if offer.id[2] in seen:
            return Pool(pool_id, invalid=f"duplicate device name {offer.id[2]}")
        seen[offer.id[2]] = None
    for one in (counters for piece in pieces for counters in piece.spec.shared_counters or ()):
        if one.name in pool.counters:
            return Pool(pool_id, invalid=f"duplicate counter set name {one.name}")
        pool.counters[one.name] = {name: nano(c.value) for name, c in (one.counters or {}).items()}
    for offer in (offer for piece in (*pieces, *elsewhere) for offer in piece.offers):
        for consumed in offer.device.consumes_counters or ():
            known = pool.counters.get(consumed.counter_set)
            if known is None:
                return Pool(pool_id, invalid=f"counter set {consumed.counter_set} not found")
            for name in consumed.counters or {}:
                if name not in known:
                    said = f"counter {name} not found in counter set {consumed.counter_set}"
                    return Pool(pool_id, invalid=said)
    pool.slices = tuple(one.offers for one in of_devices)
    pool.elsewhere = tuple(offer for one in elsewhere for offer in one.offers)
    return pool
