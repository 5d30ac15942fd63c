"""Where the money goes: the cost of a run as the bound and what each cause adds to it (``--gap``).

The linear program of the bound says what each pod is worth: its share of the cheapest nodes for all pods that run in the
same 300 s. A node with pods costs at least what they are worth. What it costs more has two causes: it is of a dearer
type, which even the best content for it at that time is not worth, or it is partly empty. So all parts add up to the
cost, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bench.bill.bound import FINE, by_step, cheapest, demand_of
from bench.bill.rows import PodRow, Shape, TypeRow
from bench.bill.use import NodeUse, Stay
from bench.bill.whole_nodes import repacked
from kubetide.nodes.expander.least_cost.solver.linear import INFINITE, Program

PARTS = {
    "bound": "the least that the pods can cost",
    "shifted": "what they can cost at least at the times at which they ran, above that: they waited",
    "booting": "nodes that are not ready yet",
    "idle_between": "ready nodes without pods that get some later",
    "idle_after": "nodes after their last pod",
    "dearer_type": "nodes with pods whose type is worth less than its price, whatever pods of that time it holds",
    "empty_held": "free capacity of nodes with a pod that may not be moved",
    "empty_movable": "free capacity of nodes whose pods may all be moved",
}
"""The parts of the cost and their meaning; they add up to it."""
OF_WHOLE_NODES = "of_whole_nodes"
MEANINGS = {
    **PARTS,
    OF_WHOLE_NODES: "what of the last three stays even if all pods are packed anew onto whole nodes every 300 s",
}
"""What is told, and its meaning."""


class _Portion(NamedTuple):
    """A node with the same pods for some seconds of a step."""

    step: int
    seconds: float
    type_name: str
    pods: tuple[tuple[Shape, int], ...]
    held: bool


def gap_usd(
    uses: Sequence[NodeUse],
    types: Sequence[TypeRow],
    *,
    cost_usd: float,
    bound_usd: float,
    horizon_s: float,
) -> dict[str, float]:
    """Return in USD what ``MEANINGS`` names.

    Args:
        uses: Nodes and their pods, from the start to the horizon.
        types: Of all nodes.
        cost_usd: What all machines cost, also before they are ready.
        bound_usd: Of the pods at the times at which they arrive and leave, see ``bound``.
        horizon_s: How long the run was.
    """
    by_name = {one.name: one for one in types}
    found = dict.fromkeys(PARTS, 0.0)
    portions: list[_Portion] = []
    ready = 0.0
    for use in uses:
        price = by_name[use.type_name].usd_per_hour / 3600
        ready += price * (use.gone_s - use.ready_s)
        busy = list(_contents(use))
        last = max((end for _, end, _ in busy), default=use.ready_s)
        with_pods = sum(end - begin for begin, end, _ in busy)
        found["idle_after"] += price * (use.gone_s - last)
        found["idle_between"] += price * (last - use.ready_s - with_pods)
        portions += _portions(use.type_name, busy)
    found["booting"] = cost_usd - ready
    found["bound"] = bound_usd
    as_run = _charge(portions, by_name, found)
    found["shifted"] = as_run - bound_usd
    rows = [_row(stay) for use in uses for stay in use.stays if stay.end_s > stay.begin_s]
    found[OF_WHOLE_NODES] = as_run * (repacked(rows, types, horizon_s) - 1)
    return found


def _contents(use: NodeUse) -> Iterator[tuple[float, float, list[Stay]]]:
    """Yield the stretches of time in which a ready node has the same pods, one and more."""
    times = {min(max(at, use.ready_s), use.gone_s) for stay in use.stays for at in (stay.begin_s, stay.end_s)}
    changes = sorted(times)
    for begin, end in pairwise(changes):
        there = [stay for stay in use.stays if stay.begin_s <= begin and stay.end_s >= end]
        if there:
            yield begin, end, there


def _portions(type_name: str, busy: Sequence[tuple[float, float, list[Stay]]]) -> Iterator[_Portion]:
    for begin, end, there in busy:
        pods = tuple(sorted(Counter(stay.shape for stay in there).items()))
        held = not all(stay.may_move for stay in there)
        for step, seconds in by_step(begin, end):
            yield _Portion(step, seconds, type_name, pods, held)


def _charge(portions: Sequence[_Portion], types: dict[str, TypeRow], found: dict[str, float]) -> float:
    """Add to the last three parts what nodes with pods cost above their pods' worth; return that worth, in USD."""
    steps: dict[int, list[_Portion]] = {}
    for one in portions:
        steps.setdefault(one.step, []).append(one)
    total = 0.0
    for there in steps.values():
        worth = _worth(there, list(types.values()))
        best: dict[str, float] = {}
        for one in there:
            node = types[one.type_name]
            if node.name not in best:
                best[node.name] = min(node.usd_per_hour, _most_worth(node, worth))
            hours = one.seconds / 3600
            value = sum(worth[shape] * number for shape, number in one.pods)
            total += value * hours
            found["dearer_type"] += (node.usd_per_hour - best[node.name]) * hours
            found["empty_held" if one.held else "empty_movable"] += (best[node.name] - value) * hours
    return total


def _worth(portions: Sequence[_Portion], types: Sequence[TypeRow]) -> dict[Shape, float]:
    """Return what a pod of each shape adds to the cheapest price of the step, in USD/h."""
    there: Counter[Shape] = Counter()
    for one in portions:
        for shape, number in one.pods:
            # One millisecond at least, so that each shape has a worth.
            there[shape] += max(1, round(one.seconds * number * FINE))
    demand = demand_of(there)
    each = cheapest(demand, types).worth.tolist()
    return {shape: value for (shape, _), value in zip(demand, each, strict=True)}


def _most_worth(node: TypeRow, worth: dict[Shape, float]) -> float:
    """Return the most that pods on a node can be worth, in USD/h, if they may be divided; only whole ones that fit count."""
    fitting = [shape for shape in worth if node.fits(PodRow(0.0, 0.0, *shape, "", "job"))]
    stock = np.array([node.max_pods, node.cpu_m, node.memory_mib, node.gpus], np.float64)
    scale = np.maximum(stock, 1.0)
    asked = np.array([[1, *shape[:3]] for shape in fitting], np.float64) / scale
    rows = len(stock)
    program = Program(np.full(rows, -INFINITE), stock / scale, maximise=True)
    program.add(
        np.array([worth[shape] for shape in fitting]),
        np.full(len(fitting), INFINITE),
        np.arange(len(fitting) + 1) * rows,
        np.tile(np.arange(rows), len(fitting)),
        asked.ravel(),
    )
    return program.solve().objective


def _row(stay: Stay) -> PodRow:
    return PodRow(stay.begin_s, stay.end_s, *stay.shape, "", "job")
