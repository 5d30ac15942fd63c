"""What is expected of nodes: when they are asked for and for whom, when they join, and when they may be removed."""

from __future__ import annotations

from kubetide.loop import Coming
from kubetide.nodes.registry.arrivals import expected_arrival
from kubetide.nodes.scale_up.pending.demand import lead_of
from kubetide.nodes.state import State
from kubetide.units.time import Instant, after, before, format_duration, format_rfc3339


def foreseen(state: State, now: Instant) -> list[Coming]:
    """Return what the loop expects, in no order."""
    return [*_orders(state, now), *_joins(state), *_leavers(state, now)]


def _orders(state: State, now: Instant) -> list[Coming]:
    """Return when nodes are looked for on behalf of the intents on the board."""
    if "intents" not in state.settings.demand_sources:
        return []
    found = []
    for intent in state.intents:
        if intent.due <= now or intent.workload.kind == "HorizontalPodAutoscaler":
            continue
        lead, workload = lead_of(state, intent), intent.workload
        at = Instant(max(now, before(intent.due, lead)))
        subject = f"{workload.kind} {workload.namespace}/{workload.name}"
        text = f"nodes are asked for, if {intent.replicas} replicas do not fit, {format_duration(lead)} before {format_rfc3339(intent.due)}"
        found.append(
            Coming(at, subject, text, f"{intent.source}: {intent.why}" if intent.why else intent.source)
        )
    return found


def _joins(state: State) -> list[Coming]:
    found = []
    for group, request in sorted(state.memory.scale_up_requests.items()):
        at, longest = expected_arrival(state.memory, group), state.memory.longest_join.get(group)
        if at is None or longest is None:
            continue
        text = f"{request.increase} more nodes have joined"
        why = (
            f"asked for at {format_rfc3339(request.time)}; the slowest so far took {format_duration(longest)}"
        )
        found.append(Coming(at, f"group {group}", text, why))
    return found


def _leavers(state: State, now: Instant) -> list[Coming]:
    needed_for = state.settings.scale_down_unneeded_time
    found = []
    for name, since in sorted(state.memory.scale_down.unneeded.items()):
        at = Instant(max(now, after(since, needed_for)))
        text = "may be given back, if it stays unneeded and no delay holds it"
        found.append(Coming(at, f"node {name}", text, f"unneeded since {format_rfc3339(since)}"))
    return found
