"""Groups below their minimum are raised to it. Source: --enforce-node-group-min-size."""

from __future__ import annotations

from itertools import chain

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import Commands, EventRecord, IncreaseSize
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.increase.increases import command
from kubetide.nodes.scale_up.reporting.events import max_nodes_total
from kubetide.nodes.scale_up.tick import Increase, Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant


def plan_min_size(state: State, tick: Tick, now: Instant) -> Commands:
    """Return the increases that raise groups to their minimum. Source: --enforce-node-group-min-size."""
    reasons: list[Reason] = []
    state.phases.begin("scaleUp")
    events: list[EventRecord] = []
    actions = _raise_to_minimum(state, tick, reasons, events, now)
    return Commands(actions=tuple(actions), events=tuple(events), reasons=tuple(reasons))


def _raise_to_minimum(
    state: State, tick: Tick, reasons: list[Reason], events: list[EventRecord], now: Instant
) -> list[IncreaseSize]:
    """Return increases for groups below their minimum, together within --max-nodes-total and the other limits.

    Upstream holds each group by itself against them, so that it may buy past a limit.
    """
    headroom = headroom_of(state, tick)
    nodes = len(state.snapshot)
    for one in tick.increases:
        bought, template = (
            state.groups[one.group.id].target_size - one.group.target_size,
            tick.templates.get(one.group.id),
        )
        nodes += bought
        if template is not None:
            headroom.take(template.node, bought)
    found = []
    for group_id, view in tick.view.groups.items():
        group, template = state.groups[group_id], tick.templates[group_id]
        short = group.min_size - group.target_size
        safe = view.healthy and not is_backed_off(state.memory.backoff.get(group_id), now)
        if not group.exists or short <= 0 or template is None or not safe:
            continue
        by_quotas = (names for _, names in headroom.exceeded_quotas(template.node))
        exceeded = dict.fromkeys(chain(headroom.exceeded_by(template.capacity), *by_quotas))
        tick.over_limits.append(("up", tuple(exceeded)))
        short = headroom.cap(template.node, short)
        limit = state.settings.max_nodes_total
        if limit and short and nodes + short > limit:
            short = limit - nodes
            events += max_nodes_total(state)
        if short > 0:
            nodes += short
            headroom.take(template.node, short)
            reasons.append(reason("BelowMinSize", group_id, size=group.target_size, minimum=group.min_size))
            found.append(command(state, Increase(group, group.target_size + short), "min_size"))
    return found
