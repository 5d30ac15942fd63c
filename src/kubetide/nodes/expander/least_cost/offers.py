"""Groups as offers, and pending pods as kinds: the arrays that the solver computes with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kubetide.nodes.expander.least_cost.solver import FleetProblem
from kubetide.nodes.expander.least_cost.solver.problem import Int64Matrix
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import PodClass
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import ColumnKey
from kubetide.scheduling.pods.resources import PODS


@dataclass(slots=True)
class Offer:
    """A group, the groups that share its increases, and the nodes bought of it.

    Attributes:
        growth: Nodes that may still be bought.
        whole: Whether it grows to its maximum or not at all.
        by_arithmetic: Whether pods may be put on its nodes by arithmetic.
        uses: What a node takes of the limits on the whole cluster.
        nodes: What is bought: the pods of each node.
    """

    group: NodeGroup
    template: Template
    similar: tuple[str, ...]
    price: float
    growth: int
    whole: bool
    by_arithmetic: bool
    uses: Mapping[str, int]
    nodes: list[list[Pod]] = field(default_factory=list)


class Kind(NamedTuple):
    """Pods that the solver cannot tell apart: their requests, and the groups that take them."""

    requests: tuple[tuple[str, int], ...]
    groups: tuple[str, ...]


def kind_of_class(pod_class: PodClass, groups: tuple[str, ...]) -> Kind:
    """Return the kind of a pod class that these groups take."""
    return Kind(tuple((name, amount) for name, amount in pod_class.requests.items() if amount > 0), groups)


class Needs(NamedTuple):
    """The summed requests of groups of pods.

    Attributes:
        pods: How many there are.
        asked: Sums of what they ask for.
        apart: Most pods of one group that keep apart by hostname; 1 where none do.
    """

    pods: int
    asked: dict[ColumnKey, int]
    apart: int


def needs_of(groups: Sequence[PodGroup]) -> Needs:
    """Return the summed requests of groups of pods."""
    asked: dict[ColumnKey, int] = {}
    apart = 1
    for group in groups:
        count = len(group.pods)
        charges: tuple[tuple[ColumnKey, int], ...] = ((PODS, 1), *group.pod_class.requests.items())
        for name, amount in charges:
            asked[name] = asked.get(name, 0) + amount * count
        if any(term.topology_key == HOSTNAME for term in group.pod_class.anti_affinity):
            apart = max(apart, count)
    return Needs(sum(len(group.pods) for group in groups), asked, apart)


def least_price_of_a_pod(offer: Offer, needs: Needs) -> float:
    """Return the least price of each pod on the offer: its share of the resources, or a whole node if pods repel."""
    stock = offer.template.stock
    nodes = float(needs.apart)
    for name, amount in needs.asked.items():
        there = stock.get(name, 0)
        if amount > 0 and there > 0:
            nodes = max(nodes, amount / there)
    return offer.price * nodes / needs.pods


def problem_of(
    kinds: Mapping[Kind, int],
    offers: Sequence[Offer],
    *,
    most: Sequence[int],
    left: Mapping[str, int],
    most_nodes: int,
) -> FleetProblem:
    """Return the arrays of a choice.

    Args:
        kinds: How many pods there are of each kind, at least one kind.
        offers: At least one.
        most: Most nodes of each offer.
        left: What is left of the limits on the whole cluster.
        most_nodes: Most nodes together.
    """
    columns = [PODS, *sorted({name for kind in kinds for name, _ in kind.requests} - {PODS})]
    asked = [{PODS: 1, **dict(kind.requests)} for kind in kinds]
    limits = sorted(left)
    # Most kinds have the same groups, and then the same tuple of them.
    takers = {
        id(groups): _which(groups, offers)
        for groups in {id(kind.groups): kind.groups for kind in kinds}.values()
    }
    uses = [[1] * len(offers), *([offer.uses[name] for offer in offers] for name in limits)]
    return FleetProblem(
        demand=np.array(list(kinds.values()), np.int64),
        requests=np.array([[one.get(name, 0) for name in columns] for one in asked], np.int64),
        stock=stock_of(offers, columns),
        prices=np.array([offer.price for offer in offers], np.float64),
        most=np.array(most, np.int64),
        allowed=np.array([takers[id(kind.groups)] for kind in kinds], np.bool_),
        uses=np.array(uses, np.int64),
        left=np.array([most_nodes, *(max(0, left[name]) for name in limits)], np.int64),
    )


def stock_of(offers: Sequence[Offer], columns: Sequence[str]) -> Int64Matrix:
    """Return (offers, columns): the free amount of each resource on a new node, 0 or more."""
    stocks = [offer.template.stock for offer in offers]
    # Column by column: there are hundreds of offers and few resources.
    found = np.array([[one.get(name, 0) for one in stocks] for name in columns], np.int64)
    return np.ascontiguousarray(np.maximum(found, 0).T)


def _which(groups: tuple[str, ...], offers: Sequence[Offer]) -> list[bool]:
    known = set(groups)
    return [one.group.id in known for one in offers]
