"""Groups below their minimum are raised to it. Source: --enforce-node-group-min-size."""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import Commands, IncreaseSize
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.increase.increases import command
from kubetide.nodes.scale_up.tick import Increase, Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant


def plan_min_size(state: State, tick: Tick, now: Instant) -> Commands:
    """Return the increases that raise groups to their minimum. Source: --enforce-node-group-min-size."""
    reasons: list[Reason] = []
    state.phases.begin("scaleUp")
    actions = _raise_to_minimum(state, tick, reasons, now)
    return Commands(actions=tuple(actions), reasons=tuple(reasons))


def _raise_to_minimum(state: State, tick: Tick, reasons: list[Reason], now: Instant) -> list[IncreaseSize]:
    """Return increases for groups below their minimum. Source: --enforce-node-group-min-size."""
    asked_for = sum(state.groups[one.group.id].target_size - one.group.target_size for one in tick.increases)
    nodes = len(state.snapshot) + asked_for
    headroom = headroom_of(state, tick)
    found = []
    for group_id, view in tick.view.groups.items():
        group, template = state.groups[group_id], tick.templates[group_id]
        short = group.min_size - group.target_size
        safe = view.healthy and not is_backed_off(state.memory.backoff.get(group_id), now)
        if not group.exists or short <= 0 or template is None or not safe:
            continue
        if exceeded := headroom.exceeded_by(template.capacity):
            tick.over_limits.append(("up", exceeded))
        if state.settings.max_nodes_total:
            short = min(short, state.settings.max_nodes_total - nodes)
        short = headroom.cap(template.node, max(short, 0))
        if short > 0:
            reasons.append(reason("BelowMinSize", group_id, size=group.target_size, minimum=group.min_size))
            found.append(command(state, Increase(group, group.target_size + short), "min_size"))
    return found
