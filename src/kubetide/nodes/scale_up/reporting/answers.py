"""The answers on the board: replicas and larger pods that have no node yet, when one is expected, and why none comes."""

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
from kubetide.nodes.scale_up.reporting.pod_events import MAX_TOTAL_NODES, reasons_text
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.meta import Key, key_of
from kubetide.plan.board import Capacity, Workload
from kubetide.units.time import Instant


class _Lack(NamedTuple):
    """A pod that no present node accepts: when a node for it is expected, if that is known, and what it waits for.

    Where ``is_refused``, no node group takes it now, and ``detail`` is what the groups say.
    """

    pod: Key
    expected: Instant | None
    detail: str
    is_refused: bool = False

    @property
    def text(self) -> str:
        """What the pod waits for."""
        return f"no node group takes it now: {self.detail}" if self.is_refused else self.detail


def board_answers(state: State, tick: Tick) -> tuple[Capacity, ...]:
    """Return one answer per workload with pods that no present node accepts, in order of workload.

    None without the demand source ``intents``: the loops then know nothing of each other's replicas, as upstream's.
    Pods that fit on nodes that are there already are not missing. For pods that wait for nodes on
    their way the expected time is that of the request plus the longest joining seen of the group;
    None when no joining was ever seen, or when no group would take the pods.
    """
    if "intents" not in state.settings.demand_sources:
        return ()
    found: dict[Workload, Capacity] = {}
    for lack in _lacks(state, tick):
        workload = tick.demand.workloads.get(lack.pod)
        if workload is None or tick.demand.virtual.get(lack.pod) == REPLACEMENTS:
            continue
        one = Capacity(workload, 1, lack.expected, lack.detail, int(lack.is_refused))
        known = found.get(workload)
        found[workload] = one if known is None else _together(known, one)
    return tuple(found[workload] for workload in sorted(found))


def replacement_waits(state: State) -> dict[str, str]:
    """Return what the announced replacements of running pods wait for, by uid of these; empty where a node has the capacity.

    Expendable pods, for which no node is ever bought, wait for nothing. Called while the tick's placements stand in the snapshot.
    """
    tick = state.tick
    if tick is None or not state.replacements:
        return {}
    lacking = {lack.pod: lack.text for lack in _lacks(state, tick)}
    placed = {key_of(pod) for pod, _ in tick.demand.placed}
    in_place = fitting_in_place(state)
    waits = {}
    for one, _, budget, is_expendable in replaced_pods(state):
        key = key_of_replacement(one)
        if budget is not None:
            waits[one.uid] = f"PodDisruptionBudget {'/'.join(budget)} allows no eviction of it now"
        elif is_expendable or one.uid in in_place:
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
            yield _Lack(key_of(pod), expected, f"nodes of group {group} are on their way")
    bought, refusals = _bought(tick), _refusals(state, tick)
    for pod in demand.pods:
        key = key_of(pod)
        if key in bought:
            yield _Lack(key, None, f"group {bought[key]} is asked for nodes")
        elif key in refusals:
            yield _Lack(key, None, refusals[key], is_refused=True)
        else:
            yield _Lack(key, None, f"nothing is bought: {tick.result}")
    for pod in demand.too_new:
        yield _Lack(key_of(pod), None, "its pods are too new to be looked at")


def _together(known: Capacity, one: Capacity) -> Capacity:
    """Return both: the latest time, none once one is unknown, and the first refusal's detail."""
    latest = None
    if known.expected is not None and one.expected is not None:
        latest = max(known.expected, one.expected)
    detail = one.detail if one.refused and not known.refused else known.detail
    return Capacity(known.workload, known.missing + 1, latest, detail, known.refused + one.refused)


def _refusals(state: State, tick: Tick) -> dict[Key, str]:
    """Return the pods that no node group takes now, and what the groups say, counted as in upstream's events."""
    if tick.result == "ScaleUpLimitedByMaxNodesTotal":
        return dict.fromkeys(map(key_of, tick.demand.pods), MAX_TOTAL_NODES)
    found: dict[Key, str] = {}
    for verdict in tick.verdicts:
        if not verdict.accepted:
            text = reasons_text(tick, verdict, state.groups) or "there are no node groups"
            found.update(dict.fromkeys(map(key_of, verdict.pods.pods), text))
    return found


def _bought(tick: Tick) -> dict[Key, str]:
    """Return the pods that new nodes are asked for, and the group of each."""
    chosen = tick.chosen if tick.increases else ()
    return {key_of(pod): option.group.id for option in chosen for pod in option.pods}
