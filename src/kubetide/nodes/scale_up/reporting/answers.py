"""The answer on the board: how many requested replicas have no node yet, and when one is expected."""

from __future__ import annotations

from kubetide.nodes.registry.arrivals import expected_arrival
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.plan.board import Capacity, Workload
from kubetide.units.time import Instant


def board_answers(state: State, tick: Tick) -> tuple[Capacity, ...]:
    """Return one answer per workload with pods that no present node accepts, in order of workload.

    Pods that fit on nodes that are there already are not missing. For pods that wait for nodes on
    their way the expected time is that of the request plus the longest joining seen of the group;
    None when no joining was ever seen, or when no group would take the pods.
    """
    demand = tick.demand
    missing: dict[Workload, int] = {}
    expected: dict[Workload, Instant | None] = {}
    detail: dict[Workload, str] = {}
    for pod, node_name in demand.placed:
        group = tick.upcoming_nodes.get(node_name)
        workload = demand.workloads.get((pod.metadata.namespace, pod.metadata.name))
        if group is None or workload is None:
            continue
        missing[workload] = missing.get(workload, 0) + 1
        _expect(expected, workload, expected_arrival(state.memory, group))
        detail.setdefault(workload, f"waits for nodes of group {group}")
    bought = _bought(tick)
    for pod in (*demand.pods, *demand.too_new):
        key = (pod.metadata.namespace, pod.metadata.name)
        workload = demand.workloads.get(key)
        if workload is None:
            continue
        missing[workload] = missing.get(workload, 0) + 1
        if key in bought:
            _expect(expected, workload, None)
            detail.setdefault(workload, f"group {bought[key]} is asked for nodes")
        else:
            _expect(expected, workload, None)
            detail[workload] = f"no node group takes it now: {tick.result}"
    return tuple(
        Capacity(workload, missing[workload], expected[workload], detail[workload])
        for workload in sorted(missing)
    )


def _expect(expected: dict[Workload, Instant | None], workload: Workload, at: Instant | None) -> None:
    """Keep the latest; once one is unknown, all of the workload is."""
    if workload not in expected:
        expected[workload] = at
        return
    former = expected[workload]
    expected[workload] = None if former is None or at is None else Instant(max(former, at))


def _bought(tick: Tick) -> dict[tuple[str, str], str]:
    """Return the pods that new nodes are asked for, and the group of each."""
    chosen = tick.chosen if tick.increases else ()
    return {
        (pod.metadata.namespace, pod.metadata.name): option.group.id
        for option in chosen
        for pod in option.pods
    }
