"""The bill of a scheduler that knows all arrivals and departures: whole nodes, with and without moving pods.

``repacked``: the cheapest whole nodes for the pods of a moment, as if each could move at no price. ``unmoved``: each pod
stays where it was put, nodes begin when their first pod comes and end with their last; a greedy choice, so more than
the least possible.

    python -m bench.bill.omniscient [SET ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import numpy as np

from bench.bill.__main__ import DATA
from bench.bill.bound import bound_usd
from bench.bill.rows import PodRow, TypeRow
from bench.bill.sets import SETS
from bench.bill.whole_nodes import repacked

_BOOT_S = 75


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
