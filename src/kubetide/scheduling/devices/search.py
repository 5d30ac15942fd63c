"""The search for devices: the first allocation that meets all requests of all claims on one node.

Claims, requests, alternatives and devices are tried in the order given; what was taken is given back
when the rest cannot be had. The search is a stack of generators, one for each alternative and each
device: asked again, one gives back what it had taken and takes the next that is possible.

Upstream's answer is the first of an exhaustive search, and so is this one. What it passes over are
devices that differ in nothing but the name from one that led nowhere, and requests that were reached
before with the same devices taken: they would lead nowhere too.

Source: dynamic-resource-allocation v1.36, incubating allocator.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

from kubetide.objects.node import Node
from kubetide.objects.resource import DeviceClass, ResourceClaim
from kubetide.scheduling.devices.capacity import consumption, has_capacity
from kubetide.scheduling.devices.constraints import Constraint
from kubetide.scheduling.devices.counters import CounterBook, CounterState
from kubetide.scheduling.devices.offers import DeviceId, Offer, Pool
from kubetide.scheduling.devices.problems import ClaimError, NodeError
from kubetide.scheduling.devices.requests import MAX_RESULTS, Want, read_requests
from kubetide.scheduling.devices.use import Given, InUse

MAX_STEPS = 200_000
"""Devices that are looked at on one node before the search is given up; upstream gives up after 10 s."""


class _Place(NamedTuple):
    """Where the search stands: before a device of one alternative of a request of a claim.

    Attributes:
        alternative: Its index; -1 where one is still to be chosen.
        number: How many devices the alternative has been given.
        start: The first device to look at, as devices of one request are taken in order.
    """

    claim: int = 0
    request: int = 0
    alternative: int = -1
    number: int = 0
    start: int = 0


class _Level:
    """One choice of the search: the places that it leads to, one after another."""

    def __init__(self, place: _Place, places: Generator[_Place, None, None]) -> None:
        self.claim = place.claim
        self.places = places
        self.chooses_alternative = place.alternative < 0
        self.only_too_many = True
        """Whether all that was tried so far would have been more devices than a claim may have."""
        self.state: tuple[object, ...] = ()
        """What the choice depends on, where that is worth remembering."""


def allocate(
    node: Node,
    pools: Sequence[Pool],
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    in_use: InUse,
) -> list[tuple[Given, ...]] | None:
    """Return the devices of each claim on a node; None if there are not enough.

    Raises:
        ClaimError: The claim cannot be allocated on any node.
        NodeError: Nothing was found, and pools of the node are invalid.
    """
    search = _Search(node, pools, in_use)
    for claim in claims:
        search.prepare(claim, classes)
    found = search.run()
    if found is None and any(pool.invalid for pool in pools):
        raise NodeError("invalid resource pools were encountered")
    return found


class _Search:
    def __init__(self, node: Node, pools: Sequence[Pool], in_use: InUse) -> None:
        self._node = node
        self._pools = pools
        self._in_use = in_use
        self._offers = [
            (offer, pool)
            for pool in pools
            if not pool.incomplete and not pool.invalid
            for piece in pool.slices
            for offer in piece
        ]
        self._has_counters = any(offer.counters for offer, _ in self._offers)
        self._counters = CounterBook(in_use)
        self._wants: list[list[tuple[Want, ...]]] = []
        self._constraints: list[list[Constraint]] = []
        self._every: dict[int, list[tuple[Offer, Pool]]] = {}
        self._taking: dict[DeviceId, dict[int, None]] = {}
        self._sharing: dict[DeviceId, dict[str, int]] = {}
        self._dead_ends: dict[tuple[object, ...], CounterState] = {}
        self._steps = 0
        self._results: list[list[Given]] = []

    def prepare(self, claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> None:
        """Read a claim. Raises ClaimError with upstream's message."""
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        requests = read_requests(claim, classes, self._settle)
        least = sum(min(want.count for want in alternatives) for alternatives in requests)
        if least > MAX_RESULTS:
            said = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise ClaimError(f"claim {name}: {said}")
        for number, given in enumerate(claim.spec.devices.constraints or ()):
            if given.match_attribute is None and given.distinct_attribute is None:
                said = "empty constraint (unsupported constraint type?)"
                raise ClaimError(f"claim {name}, constraint #{number}: {said}")
        self._wants.append(requests)
        self._constraints.append([Constraint(one) for one in claim.spec.devices.constraints or ()])
        self._results.append([])

    def _settle(self, want: Want) -> None:
        """Find out which devices a request for all of them means."""
        if not want.every:
            return
        where = f"claim {want.claim_name}, request {want.name}: asks for all devices, but resource pool"
        found: list[tuple[Offer, Pool]] = []
        for pool in self._pools:
            if pool.incomplete:
                raise ClaimError(f"{where} {'/'.join(pool.id)} is currently being updated")
            if pool.invalid:
                raise ClaimError(f"{where} {'/'.join(pool.id)} is currently invalid")
            for piece in pool.slices:
                found += [
                    (o, pool) for o in piece if self._selectable(want, o) and self._has_capacity(want, o)
                ]
        want.count = len(found)
        self._every[id(want)] = found

    # ── The search ──

    def run(self) -> list[tuple[Given, ...]] | None:
        """Return the devices of each claim; None when not everything can be had."""
        stack: list[_Level] = []
        place: _Place | None = _Place()
        while place is not None:
            place = self._settled(place)
            if place.claim == len(self._wants):
                return [tuple(given) for given in self._results]
            claim = place.claim
            too_many = self._is_too_many(place)
            place = None if too_many else self._enter(stack, place)
            if place is None:
                place = _go_back(stack, claim, self._dead_ends, self._counters, too_many=too_many)
        return None

    def _enter(self, stack: list[_Level], place: _Place) -> _Place | None:
        level = _Level(place, self._places(place))
        if place.alternative < 0 and self._is_repeatable:
            level.state = self._state(place)
            if level.state in self._dead_ends:
                self._counters.restore(self._dead_ends[level.state])
                return None
        first = next(level.places, None)
        if first is not None:
            stack.append(level)
        return first

    def _state(self, place: _Place) -> tuple[object, ...]:
        """All that the search for this request and for those after it depends on."""
        return (
            place.claim,
            place.request,
            len(self._results[place.claim]),
            frozenset((device, *sorted(claims)) for device, claims in self._taking.items() if claims),
            frozenset((device, *amounts.items()) for device, amounts in self._sharing.items()),
            tuple(constraint.state for constraint in self._constraints[place.claim]),
            self._counters.state,
        )

    @property
    def _is_repeatable(self) -> bool:
        """Whether the same state leads to the same end, constraints that keep a device by mistake apart."""
        return not any(offer.shared for found in self._every.values() for offer, _ in found)

    def _settled(self, place: _Place) -> _Place:
        """Step over claims and requests that have all they want."""
        while place.claim < len(self._wants):
            requests = self._wants[place.claim]
            if place.request == len(requests):
                place = _Place(place.claim + 1)
                continue
            if place.alternative < 0:
                return place
            want = requests[place.request][place.alternative]
            if place.number < want.count or (want.every and not want.count):
                return place
            place = _Place(place.claim, place.request + 1)
        return place

    def _is_too_many(self, place: _Place) -> bool:
        if place.alternative < 0:
            return False
        want = self._wants[place.claim][place.request][place.alternative]
        return len(self._results[place.claim]) + want.count - place.number > MAX_RESULTS

    def _places(self, place: _Place) -> Generator[_Place, None, None]:
        """Take one possibility after another and return the place that it leads to."""
        if place.alternative < 0:
            for alternative in range(len(self._wants[place.claim][place.request])):
                yield place._replace(alternative=alternative)
            return
        want = self._wants[place.claim][place.request][place.alternative]
        if want.every:
            if want.count:
                offer, pool = self._every[id(want)][place.number]
                if self._take(place.claim, want, offer, pool):
                    try:
                        yield place._replace(number=place.number + 1)
                    finally:
                        self._give_back(place.claim, want, offer)
            return
        # Which of two equal devices is taken can matter to a request for all of them: the first that it
        # cannot have decides what it says.
        skips_equals = self._is_repeatable and not self._has_counters and not any(self._every.values())
        fruitless: dict[tuple[int, bytes], None] = {}
        for at in range(place.start, len(self._offers)):
            offer, pool = self._offers[at]
            self._count_step()
            if not self._is_candidate(place.claim, want, offer):
                continue
            skippable = skips_equals and not offer.shared and not want.admin
            if skippable and (id(pool), offer.kind) in fruitless:
                continue
            if self._take(place.claim, want, offer, pool):
                try:
                    yield place._replace(number=place.number + 1, start=at + 1)
                finally:
                    self._give_back(place.claim, want, offer)
                if skippable:
                    fruitless[id(pool), offer.kind] = None

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise ClaimError(f"node {self._node.metadata.name}: timed out trying to allocate devices")

    # ── One device ──

    def _is_candidate(self, claim: int, want: Want, offer: Offer) -> bool:
        if self._is_taken(claim, want, offer):
            return False
        return self._selectable(want, offer) and self._has_capacity(want, offer)

    def _is_taken(self, claim: int, want: Want, offer: Offer) -> bool:
        taking = self._taking.get(offer.id)
        if want.admin:
            return bool(taking) and claim in (taking or ())
        return bool(taking) or offer.id in self._in_use.devices

    def _selectable(self, want: Want, offer: Offer) -> bool:
        if not want.selects(offer):
            return False
        return offer.reach is None or offer.reach.matches(self._node)

    def _has_capacity(self, want: Want, offer: Offer) -> bool:
        taken = self._in_use.amounts.get(offer.id, {})
        return has_capacity(offer.device, want.capacity, taken, self._sharing.get(offer.id, {}))

    def _take(self, claim: int, want: Want, offer: Offer, pool: Pool) -> bool:
        """Take a device that the request selects; False when it cannot be had."""
        if self._is_taken(claim, want, offer):
            return False
        in_parts = offer.id in self._in_use.amounts or offer.id in self._sharing
        if offer.counters and not (offer.shared and in_parts) and not self._counters.take(offer, pool):
            return False
        # As upstream's, counters stay taken when the device then cannot be had for another reason.
        if not want.tolerates(offer):
            return False
        for at, constraint in enumerate(self._constraints[claim]):
            if not constraint.add(want.request, want.alternative, offer):
                if want.every:
                    device = "/".join(offer.id)
                    said = f"cannot add device {device} because a claim constraint would not be satisfied"
                    raise ClaimError(f"claim {want.claim_name}, request {want.name}: {said}")
                self._release(claim, want, at)
                return False
        # Only a shared device that is one of "all" can lack capacity here; as upstream's, its constraints keep it.
        if not self._has_capacity(want, offer):
            return False
        consumed = None
        if offer.shared:
            consumed = consumption(offer.device, want.capacity)
            sharing = self._sharing.setdefault(offer.id, {})
            for name, amount in consumed.items():
                sharing[name] = sharing.get(name, 0) + amount
        else:
            self._taking.setdefault(offer.id, {})[claim] = None
        request = f"{want.request}/{want.alternative}" if want.alternative else want.request
        self._results[claim].append(Given(offer, request, want.admin, consumed))
        return True

    def _give_back(self, claim: int, want: Want, offer: Offer) -> None:
        given = self._results[claim].pop()
        self._release(claim, want, len(self._constraints[claim]))
        if given.consumed is None:
            self._taking[offer.id].pop(claim, None)
            # As upstream's, only of whole devices counters are given back.
            self._counters.give_back(offer)
            return
        sharing = self._sharing.get(offer.id)
        if sharing is not None and given.consumed:
            for name, amount in given.consumed.items():
                sharing[name] -= amount
            if not any(sharing.values()):
                del self._sharing[offer.id]

    def _release(self, claim: int, want: Want, count: int) -> None:
        for constraint in self._constraints[claim][:count]:
            constraint.remove(want.request, want.alternative)


def _go_back(
    stack: list[_Level],
    claim: int,
    dead_ends: dict[tuple[object, ...], CounterState],
    counters: CounterBook,
    *,
    too_many: bool,
) -> _Place | None:
    """Return the next place to try after the last one led nowhere; None when nothing is left.

    A claim that would get too many devices is not helped by other devices of the requests before, only
    by other alternatives of them; claims before it are not to blame.
    """
    while stack:
        level = stack[-1]
        too_many = too_many and level.claim == claim
        if too_many and not level.chooses_alternative:
            level.places.close()
            stack.pop()
            continue
        level.only_too_many = level.only_too_many and too_many
        place = next(level.places, None)
        if place is not None:
            return place
        stack.pop()
        too_many = level.chooses_alternative and level.only_too_many
        if level.state and not too_many:
            dead_ends[level.state] = counters.state
        claim = level.claim
    return None
