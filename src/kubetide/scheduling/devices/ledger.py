"""Which claim holds which device: the cluster's allocations, and those for pods placed since.

The ledger is the one thing about devices that changes as pods come and go. Each change gives back a
way to undo it, which a snapshot keeps for its forks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubetide.objects.meta import controller_of
from kubetide.objects.node import Node
from kubetide.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubetide.scheduling.devices.facts import ClaimKey, Devices
from kubetide.scheduling.devices.offers import DeviceId, NodeReach, Pool, PoolId, Slice, gather_pools, nano
from kubetide.scheduling.devices.templates import copy_of
from kubetide.scheduling.devices.use import Given, InUse
from kubetide.scheduling.pods.device_use import CLASS_PREFIX
from kubetide.units.quantity import QuantityError, quantity_error

EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of the claim that the scheduler makes for a pod's extended resources."""

Undo = Callable[[], None]

_MOST_ASKED = 64
"""For so many different requests what was found in a set of pools is remembered."""


class Taking(NamedTuple):
    """One device of an allocation: how it counts for others."""

    device: DeviceId
    shared: bool = False
    amounts: Mapping[str, int] | None = None


class Held(NamedTuple):
    """The allocation of a claim.

    Attributes:
        reach: On which nodes; None for all.
        takings: Its devices, without those of admin access.
        failed: Whether its devices said that they cannot be bound.
    """

    reach: NodeReach | None
    takings: tuple[Taking, ...]
    failed: bool = False


class SearchResult(NamedTuple):
    """What a search for devices found: those of each claim, in order; None where they cannot be had."""

    given: tuple[tuple[Given, ...], ...] | None


class PoolSet(NamedTuple):
    """The pools of one node, or the error of reading them; ``key`` is equal for equal pools."""

    key: tuple[int, ...]
    pools: tuple[Pool, ...]
    ids: tuple[PoolId, ...]


class Ledger:
    """The allocations of one snapshot.

    Attributes:
        given: What it was made from.
        unread: Slices that are left out, with the reason.
        unread_claims: Claims that have amounts which cannot be read and count as none, with the reason.
        versions: Counts the changes of each pool.
        version: Counts all changes.
    """

    def __init__(self, devices: Devices) -> None:
        self.classes = devices.classes
        self.claims = devices.claims
        self.in_use = InUse({}, {}, {})
        self.given = devices
        self.unread: dict[str, str] = {}
        self.unread_claims: dict[ClaimKey, str] = {}
        self.versions: dict[PoolId, int] = {}
        self.version = 0
        self._held: dict[ClaimKey, Held] = {}
        self._users: dict[ClaimKey, dict[tuple[str, str], None]] = {}
        self._made_for: dict[tuple[str, str], ClaimKey] = {}
        self._of_resource = _by_resource(devices.classes)
        self._templates = devices.templates
        self._slices: list[Slice] = []
        self._numbers = 0
        self._of_node: dict[str, list[Slice]] = {}
        self._of_any: list[Slice] = []
        self._pools: dict[str, tuple[Node, PoolSet]] = {}
        self._nodes_apart = 0
        self._known_sets: dict[tuple[int, ...], PoolSet] = {}
        self._searched: dict[tuple[int, ...], dict[bytes, tuple[tuple[int, ...], SearchResult]]] = {}
        self._closed: dict[bytes, dict[int, Node]] = {}
        self._closed_until_change: dict[PoolId, dict[tuple[bytes, int], None]] = {}
        for given in devices.slices:
            self._read_slice(given)
        for key, claim in devices.claims.items():
            self._read_claim(key, claim)

    # ── Asking ──

    def class_of(self, resource: str) -> DeviceClass | None:
        """Return the device class that provides an extended resource, or None."""
        return self._of_resource.get(resource)

    def held(self, key: ClaimKey) -> Held | None:
        """Return the allocation of a claim, or None."""
        return self._held.get(key)

    def pools_of(self, node: Node) -> PoolSet:
        """Return the pools of a node. Raises ClaimError for a slice whose node selector cannot be read."""
        name = node.metadata.name
        known = self._pools.get(name)
        if known is not None:
            if known[0] is node:
                return known[1]
            self._open(*known)
        own = self._of_node.get(name, [])
        reached = [one for one in (*own, *self._of_any) if one.reaches(node)]
        if any(one.spec.per_device_node_selection for one in reached):
            self._nodes_apart += 1
            key = (self._nodes_apart, *(one.number for one in reached))
        else:
            key = (0, *(one.number for one in reached))
        found = self._known_sets.get(key)
        if found is None:
            pools = tuple(gather_pools(reached, self._slices))
            found = PoolSet(key, pools, tuple(pool.id for pool in pools))
            self._known_sets[key] = found
        self._pools[name] = (node, found)
        return found

    def state_of(self, pools: PoolSet) -> tuple[int, ...]:
        """Return a value that stays equal while nothing changes in the pools."""
        return tuple([self.versions.get(one, 0) for one in pools.ids])

    def searched(self, pools: PoolSet, asked: bytes, state: tuple[int, ...]) -> SearchResult | None:
        """Return what a search found for claims that ask for this in the pools in their present state; None if unknown."""
        known = self._searched.get(pools.key, {}).get(asked)
        return known[1] if known is not None and known[0] == state else None

    def note_search(self, pools: PoolSet, asked: bytes, state: tuple[int, ...], found: SearchResult) -> None:
        """Note the result of a search that ended without an error, for ``searched``."""
        known = self._searched.setdefault(pools.key, {})
        if len(known) >= _MOST_ASKED:
            known.clear()
        known[asked] = state, found

    def closed_to(self, asked: bytes) -> Mapping[int, Node]:
        """Return, by identity, the nodes known to have no devices for claims that ask for this; the view stays up to date."""
        found = self._closed.get(asked)
        if found is None:
            if len(self._closed) >= _MOST_ASKED:
                self._forget_closed()
            found = self._closed[asked] = {}
        return found

    def close(self, node: Node, pools: PoolSet, asked: bytes) -> None:
        """Note that a node has no devices for claims that ask for this, until one of its pools changes."""
        if asked not in self._closed or id(node) in self._closed[asked]:
            return
        self._closed[asked][id(node)] = node
        for pool in pools.ids:
            self._closed_until_change.setdefault(pool, {})[asked, id(node)] = None

    # ── Changing ──

    def use(self, key: ClaimKey, pod: tuple[str, str]) -> Undo:
        """Note that a pod uses a claim; return how to undo that."""
        users = self._users.setdefault(key, {})
        if pod in users:
            return _nothing
        users[pod] = None
        return lambda: self._forget(key, pod)

    def leave(self, key: ClaimKey, pod: tuple[str, str]) -> Undo:
        """Note that a pod uses a claim no more, and free the devices of one without users; return how to undo that."""
        users = self._users.get(key)
        if users is None or pod not in users:
            return _nothing
        before = dict(users)
        del users[pod]
        held = self._held.get(key)
        released = not users and held is not None
        if released:
            self.release(key)

        def undo() -> None:
            self._users[key] = before
            if released and held is not None:
                self.hold(key, held)

        return undo

    def add_copy(self, template: str, name: str) -> Undo:
        """Give a node the devices of the template that it copies, in pools of its own."""
        made = [copy_of(one, name) for one in self._templates.get(template, ())]
        pieces = [piece for piece in map(self._read_slice, made) if piece is not None]
        if not pieces:
            return _nothing
        known = self._pools.pop(name, None)
        if known is not None:
            self._open(*known)
        return lambda: self._drop_copy(name, len(pieces))

    def take_templates(self, templates: Mapping[str, tuple[ResourceSlice, ...]]) -> None:
        """Set the device templates of later copies."""
        self._templates = templates

    def claim_made_for(self, pod: tuple[str, str]) -> ClaimKey | None:
        """Return the claim that was made for a pod's extended resources, or None."""
        return self._made_for.get(pod)

    def hold(self, key: ClaimKey, held: Held) -> None:
        """Allocate devices to a claim."""
        self._held[key] = held
        for taking in held.takings:
            self._count(taking, 1)
        self.version += 1

    def release(self, key: ClaimKey) -> None:
        """Free a claim's devices."""
        for taking in self._held.pop(key).takings:
            self._count(taking, -1)
        self.version += 1

    # ── Inside ──

    def _forget(self, key: ClaimKey, pod: tuple[str, str]) -> None:
        users = self._users[key]
        del users[pod]
        if not users:
            del self._users[key]

    def _count(self, taking: Taking, sign: int) -> None:
        device = taking.device
        pool = device[:2]
        self.versions[pool] = self.versions.get(pool, 0) + 1
        for asked, node in self._closed_until_change.pop(pool, ()):
            self._closed[asked].pop(node, None)
        _add(self.in_use.shares if taking.shared else self.in_use.devices, device, sign)
        if taking.amounts is None:
            return
        amounts = self.in_use.amounts.setdefault(device, {})
        for name, amount in taking.amounts.items():
            amounts[name] = amounts.get(name, 0) + sign * amount
        if sign < 0 and not any(amounts.values()):
            del self.in_use.amounts[device]

    def _open(self, node: Node, pools: PoolSet) -> None:
        """Look for devices on a node again."""
        for asked, nodes in self._closed.items():
            nodes.pop(id(node), None)
            for pool in pools.ids:
                self._closed_until_change.get(pool, {}).pop((asked, id(node)), None)

    def _forget_closed(self) -> None:
        for nodes in self._closed.values():
            nodes.clear()  # who looks at them still sees what is known
        self._closed.clear()
        self._closed_until_change.clear()

    def _drop_copy(self, name: str, count: int) -> None:
        """Forget the slices that were read last, which are those of a node."""
        del self._slices[-count:]
        del self._of_node[name]
        known = self._pools.pop(name, None)
        if known is not None:
            self._open(*known)
            self._known_sets.pop(known[1].key, None)
            self._searched.pop(known[1].key, None)

    def _read_slice(self, given: ResourceSlice) -> Slice | None:
        self._numbers += 1
        try:
            piece = Slice(given, self._numbers)
        except QuantityError as error:
            self.unread[given.metadata.name] = str(error)
            return None
        self._slices.append(piece)
        if piece.of_one_node:
            self._of_node.setdefault(piece.of_one_node, []).append(piece)
        else:
            self._of_any.append(piece)
        return piece

    def _read_claim(self, key: ClaimKey, claim: ResourceClaim) -> None:
        owner = controller_of(claim.metadata)
        if owner is not None and (claim.metadata.annotations or {}).get(EXTENDED_CLAIM) == "true":
            self._made_for[claim.metadata.namespace, owner.name] = key
        if claim.status.allocation is None:
            return
        for user in claim.status.reserved_for or ():
            if user.resource == "pods":
                self._users.setdefault(key, {})[claim.metadata.namespace, user.name] = None
        self.hold(key, _held(claim))
        for result in claim.status.allocation.devices.results or ():
            for name, value in (result.consumed_capacity or {}).items():
                problem = quantity_error(value)
                if problem is not None:
                    self.unread_claims[key] = f"consumedCapacity[{name}] of {result.device}: {problem}"


def _nothing() -> None:
    """Undo nothing."""


def _add(counts: dict[DeviceId, int], device: DeviceId, sign: int) -> None:
    counts[device] = counts.get(device, 0) + sign
    if not counts[device]:
        del counts[device]


def _held(claim: ResourceClaim) -> Held:
    allocation = claim.status.allocation
    assert allocation is not None  # the caller has looked
    takings: list[Taking] = []
    for result in allocation.devices.results or ():
        if result.admin_access:
            continue
        device = (result.driver, result.pool, result.device)
        if result.share_id is None:
            takings.append(Taking(device))
            continue
        amounts = None
        if result.consumed_capacity is not None:
            amounts = {name: _amount(value) for name, value in result.consumed_capacity.items()}
        takings.append(Taking(device, shared=True, amounts=amounts))
    selector = allocation.node_selector
    return Held(None if selector is None else NodeReach(selector=selector), tuple(takings), _failed(claim))


def _amount(value: str | float) -> int:
    try:
        return nano(value)
    except QuantityError:
        return 0


def _failed(claim: ResourceClaim) -> bool:
    """Return whether a device has a condition that its driver named as a failure of binding."""
    allocation = claim.status.allocation
    reported = {
        (one.driver, one.pool, one.device): one.conditions or ()
        for one in reversed(claim.status.devices or ())
    }
    for result in (allocation.devices.results if allocation else None) or ():
        if not result.binding_conditions:
            continue
        conditions = reported.get((result.driver, result.pool, result.device))
        if conditions is None:
            return False
        true = {one.type for one in conditions if one.status == "True"}
        if any(one in true for one in result.binding_failure_conditions or ()):
            return True
        if any(one not in true for one in result.binding_conditions):
            return False
    return False


def _by_resource(classes: Mapping[str, DeviceClass]) -> dict[str, DeviceClass]:
    """Return which class stands for which extended resource: of several the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    ordered = sorted(classes.values(), key=lambda one: one.metadata.name)
    for one in sorted(ordered, key=lambda one: one.metadata.creation_timestamp or "", reverse=True):
        if one.spec.extended_resource_name is not None:
            found.setdefault(one.spec.extended_resource_name, one)
        found[f"{CLASS_PREFIX}{one.metadata.name}"] = one
    return found


def taking_of(given: Given) -> Taking | None:
    """Return how an allocated device counts from now on; None for admin access, which does not count."""
    if given.admin:
        return None
    return Taking(given.offer.id, shared=given.consumed is not None, amounts=given.consumed)
