"""The bound of the bill: a linear program every 300 s, integrated. No policy can cost less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.bill.rows import PodRow, Shape, TypeRow, impossible
from kubetide.nodes.expander.least_cost.solver import FleetProblem
from kubetide.nodes.expander.least_cost.solver.problem import no_limits
from kubetide.nodes.expander.least_cost.solver.relaxation import relax

STEP_S = 300
_FINE = 1000
"""Demand is counted in milliseconds of pods, as the program's demand is whole."""


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
        end = min(pod.departure_s, horizon_s)
        first = int(pod.arrival_s // STEP_S)
        for at in range(first, len(steps)):
            begin = at * STEP_S
            if begin >= end:
                break
            inside = min(end, begin + STEP_S) - max(pod.arrival_s, begin)
            steps[at][pod.shape] += round(inside * _FINE)
    known: dict[tuple[tuple[Shape, int], ...], float] = {}
    total = 0.0
    for step in steps:
        key = tuple(sorted((shape, count) for shape, count in step.items() if count > 0))
        if key and key not in known:
            known[key] = _least(key, types)
        total += known.get(key, 0.0) / _FINE / 3600
    return total


def _least(demand: Sequence[tuple[Shape, int]], types: Sequence[TypeRow]) -> float:
    """Return USD/h times the milliseconds of demand."""
    shapes = [shape for shape, _ in demand]
    allowed = [[selector in ("", one.gpu_model) for one in types] for *_, selector in shapes]
    problem = FleetProblem(
        demand=np.array([count for _, count in demand], np.int64),
        requests=np.array([[1, *shape[:3]] for shape in shapes], np.int64),
        stock=np.array([[one.max_pods, one.cpu_m, one.memory_mib, one.gpus] for one in types], np.int64),
        prices=np.array([one.usd_per_hour for one in types]),
        most=np.full(len(types), sum(count for _, count in demand), np.int64),
        allowed=np.array(allowed, np.bool_),
        **no_limits(len(types)),
    )
    return relax(problem, may_leave_out=False).price
