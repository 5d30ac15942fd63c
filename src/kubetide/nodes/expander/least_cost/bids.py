"""Least cost, pods with inter-pod rules, through the estimator: buys from the cheapest group for a pod, repeatedly."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from kubetide.nodes.expander import Option, choose
from kubetide.nodes.expander.least_cost.offers import Needs, Offer, least_price_of_a_pod, needs_of
from kubetide.nodes.expander.least_cost.purchase import Buying
from kubetide.nodes.scale_up.choosing.expander_context import expander_context
from kubetide.scheduling.estimator.packing import Estimate, Limits, estimate
from kubetide.scheduling.thresholds import OFFERS_ESTIMATED


class _Bid(NamedTuple):
    """What one group would do for pods with inter-pod rules."""

    option: Option
    packed: Estimate
    takes: list[int]
    """The pods that the estimate was about, as keys of ``waiting``."""
    takes_all: bool
    """Whether no group of like pods is left with a rest."""


def buy_with_inter_pod_rules(buying: Buying, only: Container[int] | None = None) -> None:
    """Buy for pods with inter-pod rules while an option is left; pods that a purchase brings under such rules come last.

    Args:
        buying: Is added to.
        only: Numbers of groups of pods beside which none is looked at.
    """
    while True:
        numbers = [
            at
            for at, group in buying.waiting.items()
            if (only is None or at in only) and buying.has_inter_pod_rules(at, group.pod_class)
        ]
        found = _bids(buying, numbers)
        if not found:
            return
        settings = buying.state.settings
        # Pods that stick together may be stranded by an option that takes only some of them.
        bids = [one for one in found if one.takes_all] or found
        choice = choose(
            [one.option for one in bids],
            settings.expander,
            seed=settings.seed,
            now=buying.now,
            context=expander_context(buying.state),
        )
        _take(buying, next(one for one in bids if choice.option is None or one.option is choice.option))


def _bids(buying: Buying, numbers: list[int]) -> list[_Bid]:
    """Return what the most promising offers would do; others are asked only while these can do nothing."""
    found: list[_Bid] = []
    for offer, takes in _promising(buying, numbers):
        if len(found) >= OFFERS_ESTIMATED:
            break
        most = buying.most_of(offer)
        packed = estimate(
            buying.snapshot,
            offer.template.node,
            offer.template.pods,
            [buying.waiting[one] for one in takes],
            Limits((most,)),
            start=buying.state.memory.rotation,
        )
        pods = tuple(pod for scheduled in packed.scheduled for pod in scheduled)
        nodes = offer.growth if offer.whole else _new_nodes(packed)
        if pods and nodes:
            option = Option(offer.group, offer.template, nodes, pods, offer.similar)
            sizes = [len(buying.waiting[one].pods) for one in takes]
            whole = all(
                len(scheduled) in {0, size} for scheduled, size in zip(packed.scheduled, sizes, strict=True)
            )
            found.append(_Bid(option, packed, takes, whole))
    return found


def _promising(buying: Buying, numbers: list[int]) -> list[tuple[Offer, list[int]]]:
    """Return the offers that take any of the pods, with these: first where a pod can be cheapest."""
    ranked: list[tuple[float, str, list[int]]] = []
    needs: dict[tuple[int, ...], Needs] = {}
    for group_id, offer in buying.offers.items():
        takes = [one for one in numbers if group_id in buying.accepted[one]]
        if takes and buying.most_of(offer) > 0:
            key = tuple(takes)
            if key not in needs:
                needs[key] = needs_of([buying.waiting[one] for one in takes])
            ranked.append((least_price_of_a_pod(offer, needs[key]), group_id, takes))
    return [(buying.offers[group_id], takes) for _, group_id, takes in sorted(ranked)]


def _new_nodes(packed: Estimate) -> int:
    """Count the added nodes that took pods; those that stayed empty, and existing ones, are not bought."""
    return sum(any(int(row[at]) for row in packed.counts) for at in range(len(packed.added)))


def _take(buying: Buying, bid: _Bid) -> None:
    """Put the nodes and the pods of an estimate into the fork."""
    offer, nodes, packed = buying.offers[bid.option.group.id], bid.option.nodes, bid.packed
    queues = [list(pods) for pods in packed.scheduled]
    made = len(buying.made)
    for at, known in enumerate((*packed.added, *packed.borrowed)):
        here = [int(row[at]) for row in packed.counts]
        is_new = at < len(packed.added)
        if is_new and not any(here):
            continue
        # The estimate's names of new nodes are not unique over estimates.
        name = buying.add_node(offer) if is_new else known
        for queue, count in zip(queues, here, strict=True):
            for pod in queue[:count]:
                buying.snapshot.add_pod(pod, name)
                if name in buying.made:
                    buying.made[name].append(pod)
            del queue[:count]
    while len(buying.made) < made + nodes:
        buying.add_node(offer)
    buying.spend(offer, nodes)
    for number, scheduled in zip(bid.takes, packed.scheduled, strict=True):
        buying.one_by_one += len(scheduled)
        buying.serve(number, len(scheduled))
