"""Least cost: new nodes for all waiting pods at once, over all groups that have a price.

Pods without inter-pod rules are planned for by arithmetic (``solver``), unless nearly each has a size of its own. Of those with
such rules, many kinds are planned together with all the rest (``diverse``); few kinds are also tried as upstream's
estimator sees them (``bids``), which then are bought for first, and the rest fills their nodes; the cheaper of
the two counts. What no plan knows the rules of (host ports, volumes, names of nodes) is always
the estimator's. Pods that were refused are tried again when pods were placed since that their rules may have
waited for. All of it happens on forks of the tick's snapshot, so the filters have the last word.

Groups that only grow to their maximum, and those whose DaemonSet pods keep others away, have no part in
plan and arithmetic: they serve pods with inter-pod rules, and pods that no other group takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from kubetide.nodes.expander import Option
from kubetide.nodes.expander.least_cost.bids import buy_with_inter_pod_rules
from kubetide.nodes.expander.least_cost.diverse import buy_for_diverse, kinds_to_plan
from kubetide.nodes.expander.least_cost.offers import Kind, Offer, kind_of_class, problem_of
from kubetide.nodes.expander.least_cost.purchase import Buying
from kubetide.nodes.expander.least_cost.remainder import buy_by_arithmetic, fill_gaps
from kubetide.nodes.expander.least_cost.solver import (
    RELAXATION,
    Budget,
    FleetProblem,
    Meter,
    narrowed,
    rates_of,
    relax,
)
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.scale_up.tick import CostSummary, Tick
from kubetide.nodes.state import State
from kubetide.scheduling.pods.resources import PODS
from kubetide.scheduling.thresholds import (
    CLASSES_BOUGHT_BOTH_WAYS,
    DIVERSE_CLASSES,
    DIVERSE_PODS_A_CLASS,
    PROGRAM_BY_CLASS,
)
from kubetide.units.time import Instant

MOST_WORK = Budget().work
"""On all programs of one tick together, see ``Meter``."""

_Asked = tuple[tuple[str, int], ...]
"""What a pod asks for, by resource."""
Bought = tuple[tuple[Option, ...], CostSummary]


def choose_fleet(state: State, tick: Tick, headroom: Headroom, *, most_nodes: int, now: Instant) -> Bought:
    """Return the purchases per group, in order of group id, and how far they are from the optimum.

    Groups without a price must be among the skipped ones. The snapshot is left as found.

    Args:
        state: The state, with the tick's snapshot.
        tick: With verdicts.
        headroom: What is left of cpu and memory of the whole cluster.
        most_nodes: Most nodes that may be bought together.
        now: For a draw among equals.
    """
    meter = Meter(MOST_WORK)

    def bought(*, planned: bool) -> Bought:
        state.snapshot.fork()
        try:
            return _buy(Buying(state, tick, headroom, most_nodes, now, meter), planned=planned)
        finally:
            state.snapshot.revert()

    kinds = len(list(itertools.islice(kinds_to_plan(state.snapshot, tick), CLASSES_BOUGHT_BOTH_WAYS + 1)))
    if kinds > CLASSES_BOUGHT_BOTH_WAYS or _is_diverse(tick):
        return bought(planned=True)
    if not kinds:
        return bought(planned=False)
    one, other = bought(planned=False), bought(planned=True)
    return other if _is_better(other[1], one[1]) else one


def _is_diverse(tick: Tick) -> bool:
    """Return whether there are many kinds of pods and few of each."""
    kinds: dict[_Asked, None] = {}
    pods = 0
    for verdict in tick.verdicts:
        if verdict.accepted:
            kinds[tuple(verdict.pods.pod_class.requests.items())] = None
            pods += len(verdict.pods.pods)
    return len(kinds) > DIVERSE_CLASSES and pods < DIVERSE_PODS_A_CLASS * len(kinds)


def _is_better(one: CostSummary, other: CostSummary) -> bool:
    if one.left != other.left:
        return one.left < other.left
    return one.price < other.price * (1 - 1e-9)


def _buy(buying: Buying, *, planned: bool) -> Bought:
    if planned:
        buy_for_diverse(buying)
    buy_with_inter_pod_rules(buying)
    before = dict(buying.waiting)
    fill_gaps(buying)
    fleet = buy_by_arithmetic(buying)
    while buying.may_let_in_more(before):
        before = dict(buying.waiting)
        buying.catch_up()
        fill_gaps(buying)
        buy_with_inter_pod_rules(buying)
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
    alone = (
        fleet if not buying.one_by_one and all(one.by_arithmetic for one in buying.offers.values()) else None
    )
    bound = alone.bound if alone else buying.bound
    return options, CostSummary(
        price=price,
        bound=_bound_of_all(buying) if bound is None else bound,
        bound_by=alone.bound_by if alone else RELAXATION,
        greedy_price=apart + (fleet.greedy_price if fleet else 0.0),
        rounds=fleet.rounds if fleet else 0,
        one_by_one=buying.one_by_one,
        cut=buying.meter.cut,
        left=sum(len(group.pods) for group in buying.waiting.values()),
    )


def _bound_of_all(buying: Buying) -> float:
    """Return the price of the linear relaxation for all pods that have a place on the new nodes.

    Rules beside amounts are left out, so no choice for the same pods can cost less.
    """
    offers = list(buying.offers.values())
    placed = {
        (pod.metadata.namespace, pod.metadata.name): None
        for offer in offers
        for pod in itertools.chain.from_iterable(offer.nodes)
    }
    kinds: dict[_Asked, int] = {}
    for verdict in buying.tick.verdicts:
        here = sum((pod.metadata.namespace, pod.metadata.name) in placed for pod in verdict.pods.pods)
        if here:
            asked = kind_of_class(verdict.pods.pod_class, ()).requests
            kinds[asked] = kinds.get(asked, 0) + here
    if not kinds:
        return 0.0
    bought = sum(len(offer.nodes) for offer in offers)
    left = dict(buying.left)
    for offer in offers:
        for name, need in offer.uses.items():
            left[name] += need * len(offer.nodes)
    ids = tuple(buying.offers)

    def problem_for(kinds: Mapping[_Asked, int], offers: Sequence[Offer]) -> FleetProblem:
        return problem_of(
            {Kind(asked, ids): count for asked, count in kinds.items()},
            offers,
            most=[offer.growth + len(offer.nodes) for offer in offers],
            left=left,
            most_nodes=buying.most_nodes + bought,
        )

    together, useful = narrowed(problem_for({_together(kinds): 1}, offers), nodes=sum(kinds.values()))
    if len(kinds) * len(useful) > PROGRAM_BY_CLASS:
        return rates_of(together, [0], may_leave_out=False).price
    return relax(problem_for(kinds, [offers[at] for at in useful.tolist()]), may_leave_out=False).price


def _together(kinds: Mapping[_Asked, int]) -> _Asked:
    """Return what all of them ask for; the pods themselves are among it."""
    total: dict[str, int] = {PODS: sum(kinds.values())}
    for asked, count in kinds.items():
        for name, amount in asked:
            total[name] = total.get(name, 0) + amount * count
    return tuple(total.items())
