"""The bound of the bill: a linear program every 300 s, integrated. No policy can cost less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bench.bill.rows import PodRow, Shape, TypeRow, impossible
from kubetide.nodes.expander.least_cost.solver import FleetProblem
from kubetide.nodes.expander.least_cost.solver.problem import no_limits
from kubetide.nodes.expander.least_cost.solver.relaxation import Relaxation, relax

STEP_S = 300
FINE = 1000
"""Demand is counted in milliseconds of pods, as the program's demand is whole."""

Demand = tuple[tuple[Shape, int], ...]
"""Shapes in order, each with a number of pods, or of the milliseconds that they are there."""


def bound_usd(pods: Sequence[PodRow], types: Sequence[TypeRow], horizon_s: float) -> float:
    """Return the least that the pods can cost until the horizon, in USD.

    In each step pods count with their time in it and may be divided at will over the types on which one of them fits;
    nodes are fractional; of each type cpu, memory, GPUs and places for pods must suffice. Pods that fit no type cost
    nothing.
    """
    left_out = {pod.shape for pod in impossible(pods, types)}
    steps: list[Counter[Shape]] = [Counter() for _ in range(-(-int(np.ceil(horizon_s)) // STEP_S))]
    for pod in pods:
        if pod.shape in left_out:
            continue
        for at, inside in by_step(pod.arrival_s, min(pod.departure_s, horizon_s)):
            steps[at][pod.shape] += round(inside * FINE)
    known: dict[Demand, float] = {}
    total = 0.0
    for step in steps:
        key = demand_of(step)
        if key and key not in known:
            known[key] = cheapest(key, types).price
        total += known.get(key, 0.0) / FINE / 3600
    return total


def by_step(begin_s: float, end_s: float) -> Iterator[tuple[int, float]]:
    """Yield each step that a stretch of time is in, and the seconds of the stretch in it; none if it ends before it begins."""
    if end_s <= begin_s:
        return
    for at in range(int(begin_s // STEP_S), int(np.ceil(end_s / STEP_S))):
        yield at, min(end_s, (at + 1) * STEP_S) - max(begin_s, at * STEP_S)


def demand_of(step: Mapping[Shape, int]) -> Demand:
    """Return the shapes that are there in a step, in order."""
    return tuple(sorted((shape, count) for shape, count in step.items() if count > 0))


def cheapest(demand: Demand, types: Sequence[TypeRow]) -> Relaxation:
    """Return the price of a step, in USD/h times milliseconds, and what one more pod of each shape adds, in USD/h."""
    return relax(problem_of(demand, types), may_leave_out=False)


def problem_of(demand: Demand, types: Sequence[TypeRow]) -> FleetProblem:
    """Return the problem of the nodes to pay for these pods; of each type there are enough."""
    shapes = [shape for shape, _ in demand]
    allowed = [[selector in ("", one.gpu_model) for one in types] for *_, selector in shapes]
    return FleetProblem(
        demand=np.array([count for _, count in demand], np.int64),
        requests=np.array([[1, *shape[:3]] for shape in shapes], np.int64),
        stock=np.array([[one.max_pods, one.cpu_m, one.memory_mib, one.gpus] for one in types], np.int64),
        prices=np.array([one.usd_per_hour for one in types]),
        most=np.full(len(types), sum(count for _, count in demand), np.int64),
        allowed=np.array(allowed, np.bool_),
        **no_limits(len(types)),
    )
