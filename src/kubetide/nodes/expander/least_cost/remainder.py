"""Least cost, pods without inter-pod rules: onto bought nodes first, then by the solver."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from kubetide.nodes.expander.least_cost.offers import Kind, Offer, kind_of_class, problem_of
from kubetide.nodes.expander.least_cost.purchase import Buying
from kubetide.nodes.expander.least_cost.solver import Budget, Fleet, solve, with_smaller_first
from kubetide.objects.pod import ends_by_itself
from kubetide.scheduling.placement import place
from kubetide.scheduling.pods.grouping import PodGroup

_SEARCHES_A_ROUND = 3


def fill_gaps(buying: Buying) -> None:
    """Place pods that need no node of their own on bought nodes."""
    if not buying.made:
        return
    for number in list(buying.waiting):
        group = buying.waiting[number]
        placed = place(buying.snapshot, group.pods, start=buying.snapshot.row(next(iter(buying.made)))).placed
        if not placed:
            continue
        for pod, name in placed:
            if name in buying.made:
                buying.made[name].append(pod)
        keys = {(pod.metadata.namespace, pod.metadata.name) for pod, _ in placed}
        rest = tuple(pod for pod in group.pods if (pod.metadata.namespace, pod.metadata.name) not in keys)
        if rest:
            buying.waiting[number] = PodGroup(rest, group.pod_class)
        else:
            del buying.waiting[number]


def buy_by_arithmetic(buying: Buying) -> Fleet | None:
    """Buy for the pods without inter-pod rules; None without such pods or if nothing may be bought."""
    numbers = [
        at for at, group in buying.waiting.items() if not buying.has_inter_pod_rules(at, group.pod_class)
    ]
    if not numbers:
        return None
    offers = [one for one in buying.offers.values() if one.by_arithmetic and buying.most_of(one) > 0]
    ids = {offer.group.id for offer in offers}
    kinds: dict[Kind, list[int]] = {}
    for number in numbers:
        accepted = tuple(one for one in buying.accepted[number] if one in ids)
        if accepted:
            kind = kind_of_class(buying.waiting[number].pod_class, accepted)
            kinds.setdefault(kind, []).append(number)
    if not kinds:
        return None
    problem = problem_of(
        {kind: sum(len(buying.waiting[at].pods) for at in group) for kind, group in kinds.items()},
        offers,
        most=[buying.most_of(offer) for offer in offers],
        left=buying.left,
        most_nodes=buying.most_nodes,
    )
    if _most_end_by_themselves(buying, itertools.chain.from_iterable(kinds.values())):
        problem = with_smaller_first(problem)
    rounds = buying.state.settings.least_cost_rounds
    fleet = solve(problem, Budget(rounds=rounds, searches=rounds * _SEARCHES_A_ROUND), buying.meter)
    _deliver(buying, fleet, offers, list(kinds.values()))
    return fleet


def _most_end_by_themselves(buying: Buying, numbers: Iterable[int]) -> bool:
    """Return whether most of the pods run to completion.

    Nobody moves such a pod, so one keeps its whole node until it ends: of two nodes for one price the smaller are
    sooner empty. Consolidation gives back what others leave of a large one.
    """
    groups = [buying.waiting[number] for number in numbers]
    ending = sum(len(group.pods) for group in groups if ends_by_itself(group.pods[0]))
    return 2 * ending > sum(len(group.pods) for group in groups)


def _deliver(buying: Buying, fleet: Fleet, offers: list[Offer], kinds: list[list[int]]) -> None:
    waiting = buying.waiting
    queues = [itertools.chain.from_iterable([waiting[number].pods for number in kind]) for kind in kinds]
    for pattern, nodes in fleet.purchases:
        offer = offers[pattern.offer]
        filled = [
            [
                pod
                for kind, each in zip(queues, pattern.pods, strict=True)
                for pod in itertools.islice(kind, each)
            ]
            for _ in range(nodes)
        ]
        buying.add_filled(offer, filled)
    for kind, queue in zip(kinds, queues, strict=True):
        left = len(tuple(queue))
        for number in kind[::-1]:
            stays = min(left, len(waiting[number].pods))
            left -= stays
            buying.serve(number, len(waiting[number].pods) - stays)
