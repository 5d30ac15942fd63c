"""The cheapest whole nodes for the pods of a moment, as if each could move at no price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.bill.bound import STEP_S, Demand, demand_of, problem_of
from bench.bill.rows import PodRow, TypeRow
from kubetide.nodes.expander.least_cost.solver import relax, solve


def repacked(pods: Sequence[PodRow], types: Sequence[TypeRow], horizon_s: float) -> float:
    """Return the price of whole nodes over that of the relaxation, at the middle of each step; 1 without pods."""
    known: dict[Demand, tuple[float, float]] = {}
    whole = divided = 0.0
    for at in range(int(-(-horizon_s // STEP_S))):
        moment = (at + 0.5) * STEP_S
        key = demand_of(Counter(pod.shape for pod in pods if pod.arrival_s <= moment < pod.departure_s))
        if not key:
            continue
        if key not in known:
            problem = problem_of(key, types)
            known[key] = solve(problem).price, relax(problem, may_leave_out=False).price
        whole += known[key][0]
        divided += known[key][1]
    return whole / divided if divided else 1.0
