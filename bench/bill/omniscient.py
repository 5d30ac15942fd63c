"""The bill of a scheduler that knows all arrivals and departures: whole nodes, with and without moving pods.

``repacked``: the cheapest whole nodes for the pods of a moment, as if each could move at no price. ``unmoved``: each pod
stays where it was put, nodes begin when their first pod comes and end with their last; a greedy choice, so more than
the least possible.

    python -m bench.bill.omniscient [SET ...]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.bill.__main__ import DATA
from bench.bill.bound import STEP_S, bound_usd
from bench.bill.rows import PodRow, TypeRow
from bench.bill.sets import SETS
from kubetide.nodes.expander.least_cost.solver import FleetProblem, relax, solve
from kubetide.nodes.expander.least_cost.solver.problem import no_limits

_Shape = tuple[int, int, int, str]
_BOOT_S = 75


def _shape(pod: PodRow) -> _Shape:
    return pod.cpu_m, pod.memory_mib, pod.gpus, pod.selector


def repacked(pods: Sequence[PodRow], types: Sequence[TypeRow], horizon_s: float) -> float:
    """Return the price of whole nodes over that of the relaxation, at the middle of each step."""
    known: dict[tuple[tuple[_Shape, int], ...], tuple[float, float]] = {}
    whole = divided = 0.0
    for at in range(int(-(-horizon_s // STEP_S))):
        moment = (at + 0.5) * STEP_S
        there = Counter(_shape(pod) for pod in pods if pod.arrival_s <= moment < pod.departure_s)
        if not there:
            continue
        key = tuple(sorted(there.items()))
        if key not in known:
            problem = _problem(key, types)
            known[key] = solve(problem).price, relax(problem, may_leave_out=False).price
        whole += known[key][0]
        divided += known[key][1]
    return whole / divided


def _problem(demand: Sequence[tuple[_Shape, int]], types: Sequence[TypeRow]) -> FleetProblem:
    shapes = [shape for shape, _ in demand]
    return FleetProblem(
        demand=np.array([count for _, count in demand], np.int64),
        requests=np.array([[1, *shape[:3]] for shape in shapes], np.int64),
        stock=np.array([[one.max_pods, one.cpu_m, one.memory_mib, one.gpus] for one in types], np.int64),
        prices=np.array([one.usd_per_hour for one in types]),
        most=np.full(len(types), 1000, np.int64),
        allowed=np.array([[s[3] in ("", one.gpu_model) for one in types] for s in shapes], np.bool_),
        **no_limits(len(types)),
    )


def unmoved(pods: Sequence[PodRow], types: Sequence[TypeRow], horizon_s: float, *, boot_s: float) -> float:
    """Return USD of a greedy choice that knows when each pod goes; nodes are paid from ``boot_s`` before their first pod."""
    stock = np.array([[one.cpu_m, one.memory_mib, one.gpus, one.max_pods] for one in types], np.float64)
    price = np.array([one.usd_per_hour for one in types])
    free = np.zeros((0, 4))
    ends = np.zeros(0)
    kinds = np.zeros(0, np.int64)
    leaving: list[list[tuple[float, np.ndarray]]] = []
    total = 0.0
    for pod in sorted(pods):
        if pod.arrival_s >= horizon_s:
            continue
        end = min(pod.departure_s, horizon_s)
        for node, departures in enumerate(leaving):
            while departures and departures[0][0] <= pod.arrival_s:
                free[node] += departures.pop(0)[1]
        load = np.array([pod.cpu_m, pod.memory_mib, pod.gpus, 1.0])
        takes = np.array([pod.selector in ("", one.gpu_model) for one in types])
        fits = (stock >= load).all(axis=1) & takes
        share = np.where(fits, (load / np.maximum(stock, 1e-9)).max(axis=1), np.inf)
        hours = (end - pod.arrival_s) / 3600
        new = np.where(fits, price * (share * hours + boot_s / 3600), np.inf)
        cheapest = int(new.argmin())
        best, chosen = new[cheapest], -1
        if len(ends):
            open_ = (free >= load).all(axis=1) & takes[kinds] & (ends > pod.arrival_s)
            longer = np.where(open_, price[kinds] * np.maximum(0.0, end - ends) / 3600, np.inf)
            # Of several that cost nothing the fullest, so that large gaps stay for large pods.
            left = ((free - load) / np.maximum(stock[kinds], 1e-9)).max(axis=1)
            order = np.lexsort((left, longer))
            if longer[order[0]] <= best:
                chosen = int(order[0])
        if chosen < 0:
            free = np.vstack([free, stock[cheapest]])
            ends, kinds = np.append(ends, pod.arrival_s), np.append(kinds, cheapest)
            leaving.append([])
            chosen = len(ends) - 1
            total += price[cheapest] * boot_s / 3600
        total += price[kinds[chosen]] * max(0.0, end - ends[chosen]) / 3600
        ends[chosen] = max(ends[chosen], end)
        free[chosen] -= load
        leaving[chosen].append((end, load))
        leaving[chosen].sort(key=lambda one: one[0])
    return total


def main() -> None:
    """Print the figures of the sets that are named, as shares of the bound."""
    for name in sys.argv[1:] or SETS:
        one = SETS[name](DATA, 1)
        bound = bound_usd(one.pods, one.types, one.horizon_s)
        shares = {
            f"unmoved_{idle}s_idle": round(
                unmoved(one.pods, one.types, one.horizon_s, boot_s=_BOOT_S + idle) / bound, 4
            )
            for idle in (0, 225, 600)
        }
        found = {"set": name, "repacked": round(repacked(one.pods, one.types, one.horizon_s), 4), **shares}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
