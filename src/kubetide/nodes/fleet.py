"""Least cost: new nodes for all waiting pods at once, over all groups that have a price.

Pods that mind only their own node are reckoned by arithmetic (``scheduling/fleet``). The others
(spread, affinity, host ports, volumes, names of nodes) come first: the estimator says what each group
would need for them, the cheapest for each pod is taken, and so on; then what is free on those nodes
is filled. All of it happens on a fork of the tick's snapshot, so the filters have the last word.

Groups that only grow to their maximum, and those whose DaemonSet pods keep others away, have no part in
the arithmetic: they serve pods that mind others, and pods that no other group takes.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from kubetide.nodes.expander import Option, choose
from kubetide.nodes.failures import is_zero_or_max
from kubetide.nodes.fleet_offers import (
    Kind,
    Needs,
    Offer,
    kind_of_class,
    least_price_of_a_pod,
    needs_of,
    problem_of,
)
from kubetide.nodes.limits import Headroom, capacity_of
from kubetide.nodes.options import similar_groups
from kubetide.nodes.state import State
from kubetide.nodes.tick import Bargain, Tick
from kubetide.objects.pod import Pod
from kubetide.scheduling import PodClass, classify
from kubetide.scheduling.fleet import RELAXATION, Budget, Fleet, narrowed, relax, solve
from kubetide.scheduling.grouping import PodGroup
from kubetide.scheduling.packing import Estimate, Limits, estimate
from kubetide.scheduling.placement import place
from kubetide.scheduling.pod_class import classify_unbound
from kubetide.units.time import Instant

_SEARCHES_A_ROUND = 3
_MOST_BIDS = 8
"""Offers that the estimator is asked about at a time: with hundreds of groups it takes most of a tick.

Measured over 400 groups: 4, 8 and 16 come to the same price, 2 to one that is 1 to 5 % higher.
"""


class _Bid(NamedTuple):
    """What one group would do for pods that mind others."""

    option: Option
    packed: Estimate
    takes: list[int]
    """The pods that the estimate was about, as keys of ``waiting``."""
    takes_all: bool
    """Whether no group of like pods is left with a rest."""


def choose_fleet(
    state: State, tick: Tick, headroom: Headroom, *, most_nodes: int, now: Instant
) -> tuple[tuple[Option, ...], Bargain]:
    """Gives what to buy of each group, in order of group id, and how good that is.

    Groups without a price must be among the skipped ones. The snapshot is left as found.

    Args:
        state: The state, with the tick's snapshot.
        tick: With verdicts.
        headroom: What is left of cpu and memory of the whole cluster.
        most_nodes: Most nodes that may be bought together.
        now: For a draw among equals.
    """
    state.snapshot.fork()
    try:
        buying = _Buying(state, tick, headroom, most_nodes, now)
        buying.buy_for_minding()
        buying.fill_gaps()
        fleet = buying.buy_by_arithmetic()
    finally:
        state.snapshot.revert()
    options = tuple(
        Option(
            offer.group,
            offer.template,
            len(offer.nodes),
            tuple(itertools.chain.from_iterable(offer.nodes)),
            offer.similar,
            plan=tuple(map(tuple, offer.nodes)),
        )
        for offer in buying.offers.values()
        if offer.nodes
    )
    price = sum(option.nodes * buying.offers[option.group.id].price for option in options)
    apart = price - (fleet.price if fleet else 0.0)
    alone = fleet if not buying.minding and all(one.by_arithmetic for one in buying.offers.values()) else None
    return options, Bargain(
        price=price,
        bound=alone.bound if alone else buying.bound_of_all(),
        bound_by=alone.bound_by if alone else RELAXATION,
        greedy_price=apart + (fleet.greedy_price if fleet else 0.0),
        rounds=fleet.rounds if fleet else 0,
        minding=buying.minding,
        left=sum(len(group.pods) for group in buying.waiting.values()),
    )


class _Buying:
    """One choice: offers with what is bought of them, and the pods that still wait."""

    def __init__(self, state: State, tick: Tick, headroom: Headroom, most_nodes: int, now: Instant) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._tick = tick
        self._now = now
        self._left = dict(headroom.left)
        self._most_nodes = most_nodes
        self._made: dict[str, list[Pod]] = {}
        self.minding = 0
        self.offers = self._offers()
        self.waiting: dict[int, PodGroup] = {}
        self._accepted: dict[int, dict[str, None]] = {}
        for number, verdict in enumerate(tick.verdicts):
            accepted = dict.fromkeys(one for one in verdict.accepted if one in self.offers)
            if accepted:
                self.waiting[number] = verdict.pods
                self._accepted[number] = accepted

    def _offers(self) -> dict[str, Offer]:
        """Gives the groups that are offered; similar ones of the same price are one offer."""
        tick = self._tick
        found: dict[str, Offer] = {}
        shared: dict[str, None] = {}
        for group_id in tick.view.groups:
            group, template = self._state.groups[group_id], tick.templates[group_id]
            if group_id in shared or group_id in tick.skipped or template is None:
                continue
            assert group.price_per_hour is not None, "groups without a price are skipped"
            similar = tuple(
                one
                for one in similar_groups(self._state, tick, group)
                if self._state.groups[one].price_per_hour == group.price_per_hour and one not in shared
            )
            shared.update(dict.fromkeys((group_id, *similar)))
            sizes = [self._state.groups[one] for one in (group_id, *similar)]
            whole = is_zero_or_max(group)
            lonely = any(classify_unbound(pod).anti_affinity for pod in template.pods)
            found[group_id] = Offer(
                group,
                template,
                similar,
                price=group.price_per_hour,
                room=sum(max(0, one.max_size - one.target_size) for one in sizes),
                whole=whole,
                by_arithmetic=not whole and not lonely,
                uses=capacity_of(template.node),
            )
        return found

    # ── Pods that mind more than their own node ──

    def buy_for_minding(self) -> None:
        """Buys for these pods, as long as an option is left; those that begin to mind by it come after."""
        while True:
            numbers = [at for at, group in self.waiting.items() if self._minds(at, group.pod_class)]
            found = self._bids(numbers)
            if not found:
                return
            settings = self._state.settings
            # Pods that stick together may be stranded by an option that takes only some of them.
            bids = [one for one in found if one.takes_all] or found
            chosen, _ = choose(
                [one.option for one in bids], settings.expander, seed=settings.seed, now=self._now
            )
            self._take(next(one for one in bids if one.option is chosen))

    def _minds(self, number: int, pod_class: PodClass) -> bool:
        return (
            self._snapshot.minds_others(pod_class)
            or bool(pod_class.ports or pod_class.claims or pod_class.disks)
            or pod_class.names_nodes
            or not any(self.offers[one].by_arithmetic for one in self._accepted[number])
        )

    def _bids(self, numbers: list[int]) -> list[_Bid]:
        """Gives what the most promising offers would do; others are asked only while these can do nothing."""
        found: list[_Bid] = []
        for offer, takes in self._promising(numbers):
            if len(found) >= _MOST_BIDS:
                break
            most = self._most_of(offer)
            packed = estimate(
                self._snapshot,
                offer.template.node,
                offer.template.pods,
                [self.waiting[one] for one in takes],
                Limits((most,)),
                start=self._state.memory.rotation,
            )
            pods = tuple(pod for scheduled in packed.scheduled for pod in scheduled)
            nodes = offer.room if offer.whole else self._new_nodes(packed)
            if pods and nodes:
                option = Option(offer.group, offer.template, nodes, pods, offer.similar)
                sizes = [len(self.waiting[one].pods) for one in takes]
                whole = all(
                    len(scheduled) in {0, size}
                    for scheduled, size in zip(packed.scheduled, sizes, strict=True)
                )
                found.append(_Bid(option, packed, takes, whole))
        return found

    def _promising(self, numbers: list[int]) -> list[tuple[Offer, list[int]]]:
        """Gives the offers that take any of the pods, with these: first where a pod can be cheapest."""
        ranked: list[tuple[float, str, list[int]]] = []
        needs: dict[tuple[int, ...], Needs] = {}
        for group_id, offer in self.offers.items():
            takes = [one for one in numbers if group_id in self._accepted[one]]
            if takes and self._most_of(offer) > 0:
                key = tuple(takes)
                if key not in needs:
                    needs[key] = needs_of([self.waiting[one] for one in takes])
                ranked.append((least_price_of_a_pod(offer, needs[key]), group_id, takes))
        return [(self.offers[group_id], takes) for _, group_id, takes in sorted(ranked)]

    def _most_of(self, offer: Offer) -> int:
        most = min(offer.room, self._most_nodes)
        for name, need in offer.uses.items():
            if need:
                most = min(most, max(0, self._left[name] // need))
        return 0 if offer.whole and most < offer.room else most

    @staticmethod
    def _new_nodes(packed: Estimate) -> int:
        """Counts the added nodes that took pods; those that stayed empty, and existing ones, are not bought."""
        return sum(any(int(row[at]) for row in packed.counts) for at in range(len(packed.added)))

    def _take(self, bid: _Bid) -> None:
        """Puts the nodes and the pods of an estimate into the fork."""
        offer, nodes, packed = self.offers[bid.option.group.id], bid.option.nodes, bid.packed
        queues = [list(pods) for pods in packed.scheduled]
        made = len(self._made)
        for at, name in enumerate((*packed.added, *packed.borrowed)):
            here = [int(row[at]) for row in packed.counts]
            if at < len(packed.added):
                if not any(here):
                    continue
                name = self._add_node(offer)  # noqa: PLW2901  the estimate's names are not unique over estimates
            for queue, count in zip(queues, here, strict=True):
                for pod in queue[:count]:
                    self._snapshot.add_pod(pod, name)
                    if name in self._made:
                        self._made[name].append(pod)
                del queue[:count]
        while len(self._made) < made + nodes:
            self._add_node(offer)
        self._spend(offer, nodes)
        for number, scheduled in zip(bid.takes, packed.scheduled, strict=True):
            self.minding += len(scheduled)
            self._serve(number, len(scheduled))

    def _add_node(self, offer: Offer) -> str:
        name = f"{offer.template.node.metadata.name}-fleet-{len(self._made):04d}"
        self._snapshot.add_template(offer.template.node, offer.template.pods, name)
        self._made[name] = []
        offer.nodes.append(self._made[name])
        return name

    def _spend(self, offer: Offer, nodes: int) -> None:
        offer.room -= nodes
        self._most_nodes -= nodes
        for name, need in offer.uses.items():
            self._left[name] -= need * nodes

    def _serve(self, number: int, count: int) -> None:
        group = self.waiting[number]
        if count >= len(group.pods):
            del self.waiting[number]
        elif count:
            self.waiting[number] = PodGroup(group.pods[count:], group.pod_class)

    # ── What is free on the nodes bought so far ──

    def fill_gaps(self) -> None:
        """Puts pods that need no node of their own onto the nodes that are bought already."""
        if not self._made:
            return
        for number in list(self.waiting):
            group = self.waiting[number]
            placed = place(
                self._snapshot, group.pods, start=self._snapshot.row(next(iter(self._made)))
            ).placed
            for pod, name in placed:
                if name in self._made:
                    self._made[name].append(pod)
            keys = {(pod.metadata.namespace, pod.metadata.name) for pod, _ in placed}
            rest = tuple(pod for pod in group.pods if (pod.metadata.namespace, pod.metadata.name) not in keys)
            if rest:
                self.waiting[number] = PodGroup(rest, group.pod_class)
            else:
                del self.waiting[number]

    # ── All other pods ──

    def buy_by_arithmetic(self) -> Fleet | None:
        """Buys for the pods that mind only their own node; None when there are none or nothing may be bought."""
        numbers = [at for at, group in self.waiting.items() if not self._minds(at, group.pod_class)]
        offers = [one for one in self.offers.values() if one.by_arithmetic and self._most_of(one) > 0]
        ids = {offer.group.id for offer in offers}
        kinds: dict[Kind, list[int]] = {}
        for number in numbers:
            accepted = tuple(one for one in self._accepted[number] if one in ids)
            if accepted:
                kind = kind_of_class(self.waiting[number].pod_class, accepted)
                kinds.setdefault(kind, []).append(number)
        if not kinds:
            return None
        problem = problem_of(
            {kind: sum(len(self.waiting[at].pods) for at in group) for kind, group in kinds.items()},
            offers,
            most=[self._most_of(offer) for offer in offers],
            left=self._left,
            most_nodes=self._most_nodes,
        )
        rounds = self._state.settings.least_cost_rounds
        fleet = solve(problem, Budget(rounds=rounds, searches=rounds * _SEARCHES_A_ROUND))
        self._deliver(fleet, offers, list(kinds.values()))
        return fleet

    def _deliver(self, fleet: Fleet, offers: list[Offer], kinds: list[list[int]]) -> None:
        queues = [
            itertools.chain.from_iterable([self.waiting[number].pods for number in kind]) for kind in kinds
        ]
        for pattern, nodes in fleet.purchases:
            offer = offers[pattern.offer]
            self._spend(offer, nodes)
            for _ in range(nodes):
                offer.nodes.append(
                    [
                        pod
                        for kind, each in zip(queues, pattern.pods, strict=True)
                        for pod in itertools.islice(kind, each)
                    ]
                )
        for number in itertools.chain.from_iterable(kinds):
            del self.waiting[number]
        for kind, queue in zip(kinds, queues, strict=True):
            rest = tuple(queue)
            if rest:
                self.waiting[kind[0]] = PodGroup(rest, classify(rest[0]))

    # ── How good it is ──

    def bound_of_all(self) -> float:
        """Gives the price of the linear relaxation for all pods that have a place on the new nodes.

        What pods mind beside amounts is left out, so no choice for the same pods can cost less.
        """
        classes = {
            (pod.metadata.namespace, pod.metadata.name): verdict.pods.pod_class
            for verdict in self._tick.verdicts
            for pod in verdict.pods.pods
        }
        offers = list(self.offers.values())
        ids = tuple(self.offers)
        kinds: dict[Kind, int] = {}
        bought = 0
        left = dict(self._left)
        for offer in offers:
            bought += len(offer.nodes)
            for name, need in offer.uses.items():
                left[name] += need * len(offer.nodes)
            for pod in itertools.chain.from_iterable(offer.nodes):
                kind = kind_of_class(classes[pod.metadata.namespace, pod.metadata.name], ids)
                kinds[kind] = kinds.get(kind, 0) + 1
        if not kinds:
            return 0.0
        problem = problem_of(
            kinds,
            offers,
            most=[offer.room + len(offer.nodes) for offer in offers],
            left=left,
            most_nodes=self._most_nodes + bought,
        )
        return relax(narrowed(problem)[0], may_leave_out=False).price
