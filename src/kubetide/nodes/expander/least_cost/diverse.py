"""Least cost, many classes of pods with inter-pod rules: one plan over all offers, simulated on the fork."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kubetide.nodes.expander.least_cost.bids import buy_with_inter_pod_rules
from kubetide.nodes.expander.least_cost.offers import Offer
from kubetide.nodes.expander.least_cost.plan import Item, PlannedNode, plan_nodes, play
from kubetide.nodes.expander.least_cost.purchase import Buying
from kubetide.nodes.expander.least_cost.remainder import fill_gaps
from kubetide.nodes.expander.least_cost.solver.inter_pod import is_plain
from kubetide.nodes.scale_up.tick import Tick
from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.thresholds import PLAIN_SIZES_BY_COLUMN_GENERATION

_Numbers = dict[tuple[PodClass, int], list[int]]
"""Of pods of one class that the same groups take, the numbers in ``Buying.waiting``."""


def kinds_to_plan(snapshot: Snapshot, tick: Tick) -> Iterator[PodClass]:
    """Yield the class of each group of pods whose inter-pod rules a plan supports."""
    for verdict in tick.verdicts:
        pod_class = verdict.pods.pod_class
        if verdict.accepted and snapshot.has_inter_pod_rules(pod_class) and is_plain(snapshot, pod_class):
            yield pod_class


def buy_for_diverse(buying: Buying) -> None:
    """Buy by one plan for all pods whose rules it supports, after the other pods, whose nodes it fills up first.

    Pods that the filters refuse when the plan is played go on waiting.
    """
    offered, numbers, others = _sorted_out(buying)
    if others:
        buy_with_inter_pod_rules(buying, only=others)
        fill_gaps(buying)
        offered, numbers, _ = _sorted_out(buying)
    if not numbers or not offered:
        return
    offers = [offer for offer, _ in offered]
    waiting = buying.waiting
    items = [
        Item([pod for number in these for pod in waiting[number].pods], one, buying.accepted[these[0]])
        for (one, _), these in numbers.items()
    ]
    plan = plan_nodes(
        buying.snapshot,
        items,
        offers,
        most=[most for _, most in offered],
        left=buying.left,
        most_nodes=buying.most_nodes,
    )
    planned, before = plan.nodes, bool(buying.made)
    ruled = [buying.snapshot.has_inter_pod_rules(item.pod_class) for item in items]
    if _arithmetic_is_better(buying, items, ruled):
        planned = [node for node in planned if any(ruled[item] for item in node.items)]
    taken = _carry_out(buying, planned, offers, items)
    for item, these, count in zip(items, numbers.values(), taken, strict=True):
        for number in these:
            del waiting[number]
        if count < len(item.pods):
            waiting[these[0]] = PodGroup(tuple(item.pods[count:]), item.pod_class)
    if not waiting and not before and len(offers) == len(buying.offers):
        buying.bound = plan.bound


def _sorted_out(buying: Buying) -> tuple[list[tuple[Offer, int]], _Numbers, set[int]]:
    """Return the offers of a plan with the most nodes of each, the pods that it can be about, and the numbers of others with inter-pod rules."""
    offers = [
        (one, most)
        for one in buying.offers.values()
        if one.by_arithmetic and (most := buying.most_of(one)) > 0
    ]
    ids = {offer.group.id for offer, _ in offers}
    numbers: _Numbers = {}
    others: set[int] = set()
    for number, group in buying.waiting.items():
        accepted = buying.accepted[number]
        if not ids.isdisjoint(accepted) and is_plain(buying.snapshot, group.pod_class):
            numbers.setdefault((group.pod_class, id(accepted)), []).append(number)
        elif buying.has_inter_pod_rules(number, group.pod_class):
            others.add(number)
    return offers, numbers, others


def _arithmetic_is_better(buying: Buying, items: list[Item], ruled: list[bool]) -> bool:
    """Return whether nodes without any pod with inter-pod rules are left to column generation: for few kinds it is quick, and finds more."""
    plain = {
        tuple(item.pod_class.requests.items())
        for item, has_rules in zip(items, ruled, strict=True)
        if not has_rules
    }
    return buying.state.settings.least_cost_rounds > 0 and len(plain) <= PLAIN_SIZES_BY_COLUMN_GENERATION


def _carry_out(
    buying: Buying, planned: list[PlannedNode], offers: list[Offer], items: list[Item]
) -> list[int]:
    """Add the nodes that take pods, with these pods; return how many of each item they took, the first ones."""
    snapshot = buying.snapshot
    ruled = [snapshot.has_inter_pod_rules(item.pod_class) for item in items]
    names = [
        name
        for offer, nodes in itertools.groupby(planned, key=lambda node: node.offer)
        for name in buying.add_nodes(offers[offer], len(list(nodes)))
    ]
    taken = [0] * len(items)
    for name, node, pods in zip(names, planned, play(snapshot, planned, names, items), strict=True):
        if not pods:
            buying.drop_node(offers[node.offer], name)
            continue
        buying.made[name].extend(pod for _, pod in pods)
        buying.spend(offers[node.offer], 1)
        for item, _ in pods:
            taken[item] += 1
            buying.one_by_one += ruled[item]
    return taken
