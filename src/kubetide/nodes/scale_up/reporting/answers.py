"""The answers on the board: replicas and larger pods that have no node yet, and when one is expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubetide.nodes.registry.arrivals import expected_arrival
from kubetide.nodes.scale_up.pending.replacements import (
    REPLACEMENTS,
    fitting_in_place,
    key_of_replacement,
    replaced_pods,
)
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.meta import Key, key_of
from kubetide.plan.board import Capacity, Workload
from kubetide.units.time import Instant


class _Lack(NamedTuple):
    """A pod that no present node accepts: when a node for it is expected, if that is known, and what it waits for."""

    pod: Key
    expected: Instant | None
    detail: str
    refused: bool = False


def board_answers(state: State, tick: Tick) -> tuple[Capacity, ...]:
    """Return one answer per workload with pods that no present node accepts, in order of workload.

    Pods that fit on nodes that are there already are not missing. For pods that wait for nodes on
    their way the expected time is that of the request plus the longest joining seen of the group;
    None when no joining was ever seen, or when no group would take the pods.
    """
    missing: dict[Workload, int] = {}
    expected: dict[Workload, Instant | None] = {}
    detail: dict[Workload, str] = {}
    for lack in _lacks(state, tick):
        workload = tick.demand.workloads.get(lack.pod)
        if workload is None or tick.demand.virtual.get(lack.pod) == REPLACEMENTS:
            continue
        missing[workload] = missing.get(workload, 0) + 1
        _expect(expected, workload, lack.expected)
        if lack.refused:
            detail[workload] = lack.detail
        else:
            detail.setdefault(workload, lack.detail)
    return tuple(
        Capacity(workload, missing[workload], expected[workload], detail[workload])
        for workload in sorted(missing)
    )


def replacement_waits(state: State) -> dict[str, str]:
    """Return what the announced replacements of running pods wait for, by uid of these; empty where a node has the capacity.

    Called while the tick's placements stand in the snapshot.
    """
    tick = state.tick
    if tick is None or not state.replacements:
        return {}
    lacking = {lack.pod: lack.detail for lack in _lacks(state, tick)}
    placed = {key_of(pod) for pod, _ in tick.demand.placed}
    in_place = fitting_in_place(state)
    waits = {}
    for one, _, budget in replaced_pods(state):
        key = key_of_replacement(one)
        if budget is not None:
            waits[one.uid] = f"PodDisruptionBudget {'/'.join(budget)} allows no eviction of it now"
        elif one.uid in in_place:
            waits[one.uid] = ""
        elif key in tick.demand.virtual:
            fits = key in placed and key not in lacking
            waits[one.uid] = "" if fits else lacking.get(key, "no place was looked for")
        else:
            waits[one.uid] = "its node has not the capacity"
    return waits


def _lacks(state: State, tick: Tick) -> Iterator[_Lack]:
    """Yield the pods that no present node accepts: those on upcoming nodes first."""
    demand = tick.demand
    for pod, node_name in demand.placed:
        group = tick.upcoming_nodes.get(node_name)
        if group is not None:
            expected = expected_arrival(state.memory, group)
            yield _Lack(key_of(pod), expected, f"waits for nodes of group {group}")
    bought = _bought(tick)
    for pod in (*demand.pods, *demand.too_new):
        key = key_of(pod)
        if key in bought:
            yield _Lack(key, None, f"group {bought[key]} is asked for nodes")
        else:
            yield _Lack(key, None, f"no node group takes it now: {tick.result}", refused=True)


def _expect(expected: dict[Workload, Instant | None], workload: Workload, at: Instant | None) -> None:
    """Keep the latest; once one is unknown, all of the workload is."""
    if workload not in expected:
        expected[workload] = at
        return
    former = expected[workload]
    expected[workload] = None if former is None or at is None else Instant(max(former, at))


def _bought(tick: Tick) -> dict[Key, str]:
    """Return the pods that new nodes are asked for, and the group of each."""
    chosen = tick.chosen if tick.increases else ()
    return {key_of(pod): option.group.id for option in chosen for pod in option.pods}
