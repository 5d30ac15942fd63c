"""Empty nodes that are removed before the unneeded time is over, because no expected pod would need them.

Scale-down keeps every empty node for --scale-down-unneeded-time, in case pods come. What came within the last half
hour says better how many of them are likely to be used (``expected_pods``): a node stays if it is more likely than not
that pods come for it within --buy-back-price.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kubetide.explain.reasons import Reason
from kubetide.nodes.consolidation.candidates import facts_of, is_open, may_go, split_ending
from kubetide.nodes.consolidation.expected_pods import changes_by_groups, place_expected, usual_rise
from kubetide.nodes.consolidation.keeping import keep_back
from kubetide.nodes.consolidation.limits import limits_beside_moves
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.plan import Plan, within_budgets
from kubetide.nodes.scale_down.unneeded.evaluate import Removable
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.scheduling import BoolVector
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    between,
    format_duration,
    minutes,
    whole_seconds,
)

LEAST_IDLE: Duration = minutes(1)
"""How long a node must have been empty, so that pods just created have found it."""
KEPT = "it is empty and stays: as many pods as usually come within --buy-back-price would need it"


def idle_nodes(state: State, tick: Tick, now: Instant, taking: Collection[str] = ()) -> Plan:
    """Return the empty nodes to remove now; note those that expected pods would need.

    Nodes in ``taking``, which get the pods of nodes that are drained from this tick on, stay.
    Nodes as young as --scale-down-delay-after-add stay, and so do those of groups that were lately bought back. The
    snapshot is left as found.
    """
    memory, unneeded = state.memory.consolidation, state.memory.scale_down.unneeded
    needed = _needed(state, tick, now) if unneeded else {}
    memory.needed = tuple(name for name in unneeded if name in needed)
    empty = [one for one in _empty(state, now) if one.node not in taking]
    plan = Plan(empty=_within_limits(state, [one for one in empty if one.node not in needed], now))
    keep_back(state, plan, now)
    plan = within_budgets(state, plan, now)
    for one in empty:
        memory.reasons.pop(one.node, None)
        if one.node in needed:
            memory.reasons[one.node] = KEPT
    for one in plan.empty:
        memory.removed_at[one.group] = now
    return plan


def idle_node_of(state: State, group: str, taken: Collection[str]) -> str | None:
    """Return an empty node of the group that would go soon, and so can take a move's pods; None without any."""
    needed, snapshot = state.memory.consolidation.needed, state.snapshot
    unneeded = state.memory.scale_down.unneeded
    for name in sorted(one for one in unneeded if state.group_of(one) == group):
        if name in needed or name in taken or name not in snapshot:
            continue
        pods = snapshot.pods_on(name)
        is_empty = all(is_daemon_set_pod(pod) or is_mirror_pod(pod) for pod in pods)
        if is_empty and not state.health(name).unready and not state.is_leaving(name):
            return name
    return None


def upcoming_without_pods(state: State, tick: Tick) -> dict[str, int]:
    """Return, by group, how many nodes are on their way that have no pods in the plan."""
    found: dict[str, int] = {}
    for name, group in tick.upcoming_nodes.items():
        template = tick.templates.get(group)
        own = 0 if template is None else len(template.pods)
        if name in state.snapshot and len(state.snapshot.pods_on(name)) <= own:
            found[group] = found.get(group, 0) + 1
    return found


def idle_reasons(state: State, plan: Plan, now: Instant) -> Iterator[Reason]:
    """Yield the reason of each removal."""
    unneeded = state.memory.scale_down.unneeded
    for one in plan.empty:
        idle = whole_seconds(between(unneeded[one.node], now))
        yield reason("IdleNodeChosen", one.node, group=one.group, idle=format_duration(idle))


def _empty(state: State, now: Instant) -> Iterator[Removable]:
    """Yield the nodes that have been empty for long enough and that nothing keeps."""
    deletions = state.memory.scale_down.deletions
    context = drain_context(state, now, state.scale_down_cache.allowances(state.pdbs))
    for name, since in state.memory.scale_down.unneeded.items():
        group = state.groups.get(state.group_of(name) or "")
        if group is None or after(since, LEAST_IDLE) > now or name in deletions or name not in state.snapshot:
            continue
        if not may_go(state, group, now) or not is_open(state, name, now):
            continue
        facts = facts_of(state, name, group, context)
        split = split_ending(state, facts, context) if facts.utilization is not None else None
        if facts.utilization is None or split is None or split[1] or split[0].pods:
            continue
        yield Removable(name, group.id, split[0], False, facts.utilization)


def _needed(state: State, tick: Tick, now: Instant) -> dict[str, None]:
    """Return the nodes on which expected pods would be, the fullest filled first and among equals the cheapest."""
    horizon = state.settings.buy_back_price
    pods = [
        pod
        for changes in changes_by_groups(state, tick.templates, now)
        for pod in usual_rise(changes, now, horizon)
    ]
    snapshot = state.snapshot
    leaving = dict.fromkeys(state.memory.scale_down.deletions)
    leaving.update(dict.fromkeys(name for move in state.memory.consolidation.moves for name in move.nodes))
    names = snapshot.node_names
    groups = [state.groups.get(state.group_of(name) or "") if name in state.nodes else None for name in names]
    prices = np.array([(group.price_per_hour or 0.0) if group is not None else 0.0 for group in groups])
    stays: BoolVector = np.array([name not in leaving for name in names], np.bool_)
    snapshot.fork()
    try:
        return dict.fromkeys(place_expected(snapshot, pods, stays & ~snapshot.unschedulable, prices))
    finally:
        snapshot.revert()


def _within_limits(state: State, some: Sequence[Removable], now: Instant) -> list[Removable]:
    """Return the nodes without which no group and no total falls below its minimum; expensive ones first."""
    limits = limits_beside_moves(state, now)
    found = []
    for one in sorted(some, key=lambda one: (-(state.groups[one.group].price_per_hour or 0.0), one.node)):
        if not limits.refusal(one.node, ()):
            limits.take(one.node, ())
            found.append(one)
    return found
