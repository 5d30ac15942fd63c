"""Least cost for pods with inter-pod rules: one plan over all offers, checked on the snapshot before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kubetide.nodes.expander.least_cost.offers import Offer, stock_of
from kubetide.nodes.expander.least_cost.solver import FleetProblem
from kubetide.nodes.expander.least_cost.solver.diverse import Diverse
from kubetide.nodes.expander.least_cost.solver.domain_counts import DomainCounts
from kubetide.nodes.expander.least_cost.solver.dominance import useful_offers
from kubetide.nodes.expander.least_cost.solver.inter_pod import Place
from kubetide.nodes.expander.least_cost.solver.problem import BoolMatrix, FloatVector
from kubetide.nodes.expander.least_cost.solver.rates import rates_of
from kubetide.objects.pod import Pod
from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.pods.resources import PODS
from kubetide.units.vectors import Int64Vector


class Item(NamedTuple):
    """Equal pods, and the groups that take them."""

    pods: Sequence[Pod]
    pod_class: PodClass
    groups: Mapping[str, None]


class PlannedNode(NamedTuple):
    """A node to buy, and the pods on it.

    Attributes:
        offer: The number of its offer.
        items: The number of each pod's item.
        levels: The level of each pod: lower ones are to be placed first, on all nodes.
    """

    offer: int
    items: tuple[int, ...]
    levels: tuple[int, ...]


class Plan(NamedTuple):
    """The nodes to buy.

    Attributes:
        nodes: In order of their offers.
        bound: No choice that places all of the pods costs less.
    """

    nodes: list[PlannedNode]
    bound: float


def plan_nodes(
    snapshot: Snapshot,
    items: Sequence[Item],
    offers: Sequence[Offer],
    *,
    most: Sequence[int],
    left: Mapping[str, int],
    most_nodes: int,
) -> Plan:
    """Return nodes for as many of the pods as the limits allow.

    Args:
        snapshot: The cluster; ``inter_pod.is_plain`` holds for each class.
        items: At least one.
        offers: At least one.
        most: Most nodes of each offer.
        left: What is left of the limits on the whole cluster.
        most_nodes: Most nodes together.
    """
    classes: dict[bytes, PodClass] = {}
    for item in items:
        assert item.pod_class.inter_pod_key is not None, "such classes cannot be planned for"
        classes.setdefault(item.pod_class.inter_pod_key, item.pod_class)
    numbers = {key: number for number, key in enumerate(classes)}
    rules_of = [numbers[item.pod_class.inter_pod_key or b""] for item in items]
    templates = [(offer.template.node, offer.template.pods) for offer in offers]
    domain_counts = DomainCounts(snapshot, list(classes.values()), templates)
    allowed, patterns = _patterns(items, offers)
    problem = _problem(items, offers, allowed[patterns], most=most, left=left, most_nodes=most_nodes)
    useful = _useful(problem, allowed, domain_counts)
    domain_counts.narrow(useful)
    problem = _narrowed(problem, useful)
    rates = rates_of(problem, patterns, may_leave_out=True)
    _share_out(problem, domain_counts, rules_of, rates.promise)
    choice = Diverse(problem, rates, domain_counts, rules_of)
    planned = choice.choose()
    if choice.limited:
        # What the limits let in is to help as many pods as it can.
        domain_counts.start_again()
        by_number = Diverse(problem, rates, domain_counts, rules_of, by_number=True)
        other = by_number.choose()
        if by_number.rest.sum() < choice.rest.sum():
            planned = other
    levels = domain_counts.levels((node.offer, [rules_of[item] for item in node.pods]) for node in planned)
    nodes = [
        PlannedNode(int(useful[node.offer]), node.pods, level)
        for node, level in zip(planned, levels, strict=True)
    ]
    return Plan(sorted(nodes, key=lambda node: node.offer), rates.price)


def _patterns(items: Sequence[Item], offers: Sequence[Offer]) -> tuple[BoolMatrix, list[int]]:
    """Return (patterns, offers) which offers take pods, and the number of each item's pattern."""
    known: dict[int, int] = {}
    rows: dict[bytes, int] = {}
    patterns: list[int] = []
    ids = [offer.group.id for offer in offers]
    for item in items:
        # Verdicts that say the same are the same object, mostly.
        number = known.get(id(item.groups))
        if number is None:
            row = np.array([one in item.groups for one in ids], np.bool_).tobytes()
            number = known[id(item.groups)] = rows.setdefault(row, len(rows))
        patterns.append(number)
    return np.frombuffer(b"".join(rows), np.bool_).reshape(len(rows), len(ids)), patterns


def _problem(
    items: Sequence[Item],
    offers: Sequence[Offer],
    allowed: BoolMatrix,
    *,
    most: Sequence[int],
    left: Mapping[str, int],
    most_nodes: int,
) -> FleetProblem:
    names = dict.fromkeys(name for item in items for name in item.pod_class.requests)
    columns = [PODS, *sorted(name for name in names if name != PODS)]
    limits = sorted(left)
    return FleetProblem(
        demand=np.array([len(item.pods) for item in items], np.int64),
        requests=np.array(
            [[1, *(max(0, item.pod_class.requests.get(name, 0)) for name in columns[1:])] for item in items],
            np.int64,
        ),
        stock=stock_of(offers, columns),
        prices=np.array([offer.price for offer in offers], np.float64),
        most=np.array(most, np.int64),
        allowed=allowed,
        uses=np.array(
            [[1] * len(offers), *([offer.uses[name] for offer in offers] for name in limits)], np.int64
        ),
        left=np.array([most_nodes, *(max(0, left[name]) for name in limits)], np.int64),
    )


def _useful(problem: FleetProblem, allowed: BoolMatrix, domain_counts: DomainCounts) -> Int64Vector:
    """Return the offers that no other makes useless; those of other domains cannot."""
    places: dict[Place, int] = {}
    where = np.array([places.setdefault(place, len(places)) for place in domain_counts.places], np.int64)
    apart = where[None] == np.arange(len(places))[:, None]
    rows = np.concatenate([allowed, apart])
    demand = np.zeros(len(rows), np.int64)
    demand[0] = problem.demand.sum()
    by_pattern = FleetProblem(
        demand=demand,
        requests=np.zeros((len(rows), problem.requests.shape[1]), np.int64),
        stock=problem.stock,
        prices=problem.prices,
        most=problem.most,
        allowed=rows,
        uses=problem.uses,
        left=problem.left,
    )
    useful: Int64Vector = np.flatnonzero(useful_offers(by_pattern) & (problem.most > 0))
    return useful


def _narrowed(problem: FleetProblem, useful: Int64Vector) -> FleetProblem:
    return FleetProblem(
        demand=problem.demand,
        requests=problem.requests,
        stock=problem.stock[useful],
        prices=problem.prices[useful],
        most=problem.most[useful],
        allowed=problem.allowed[:, useful],
        uses=problem.uses[:, useful],
        left=problem.left,
    )


def _share_out(
    problem: FleetProblem, domain_counts: DomainCounts, rules_of: Sequence[int], promise: FloatVector
) -> None:
    numbers = np.bincount(rules_of, weights=problem.demand, minlength=len(domain_counts.rules)).astype(
        np.int64
    )
    reached = np.zeros((len(domain_counts.rules), len(problem.prices)), np.bool_)
    np.logical_or.at(reached, np.array(rules_of), problem.capacity > 0)
    order = np.argsort(-promise, kind="stable")
    domain_counts.share_out(numbers.tolist(), [order[row[order]].tolist() for row in reached])


def play(
    snapshot: Snapshot, nodes: Sequence[PlannedNode], names: Sequence[str], items: Sequence[Item]
) -> list[list[tuple[int, Pod]]]:
    """Place the pods on their nodes one by one, as far as the filters allow; they stay placed.

    Args:
        snapshot: Has the nodes already.
        nodes: The plan.
        names: The name of each node.
        items: What the plan is about.
    Returns: Of each node, the pods that it took, each with the number of its item.
    """
    places = [(at, place) for at, node in enumerate(nodes) for place in range(len(node.items))]
    waiting = sorted(places, key=lambda one: nodes[one[0]].levels[one[1]])
    queues = [iter(item.pods) for item in items]
    found: list[list[tuple[int, Pod]]] = [[] for _ in nodes]
    before = len(waiting) + 1
    while 0 < len(waiting) < before:
        before, refused = len(waiting), []
        for at, place in waiting:
            number = nodes[at].items[place]
            pod_class = items[number].pod_class
            if not snapshot.fits(pod_class, names[at]):
                refused.append((at, place))
                continue
            pod = next(queues[number])
            snapshot.add_pod(pod, names[at], pod_class)
            found[at].append((number, pod))
        waiting = refused
    return found
