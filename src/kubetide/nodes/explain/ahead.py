"""What is expected of nodes: when they are asked for and for whom, for whom none comes, when they join, and when they may be removed."""

from __future__ import annotations

from kubetide.loop import Coming
from kubetide.nodes.records.export import with_own_memory
from kubetide.nodes.registry.arrivals import expected_arrival, longest_join_text
from kubetide.nodes.registry.cluster_state import observe, upcoming_nodes
from kubetide.nodes.scale_up.pending.demand import existing_pods, expected_boot, is_asked_for, lead_of
from kubetide.nodes.scale_up.reporting.answers import board_answers
from kubetide.nodes.state import State
from kubetide.units.lists import counted
from kubetide.units.time import Instant, after, before, format_duration, format_rfc3339


def foreseen(state: State, now: Instant) -> list[Coming]:
    """Return what the loop expects, in no order."""
    return [*_orders(state, now), *_refused(state, now), *_joins(state, now), *_leavers(state, now)]


def _orders(state: State, now: Instant) -> list[Coming]:
    """Return when nodes are looked for on behalf of the intents on the board."""
    if "intents" not in state.settings.demand_sources:
        return []
    found = []
    coming = [one for one in state.intents if one.due > now and is_asked_for(one)]
    boot = expected_boot(state)
    existing = existing_pods(state, [one.workload for one in coming])
    for intent in coming:
        lead, workload = lead_of(intent, boot), intent.workload
        if existing[workload] >= intent.replicas:
            continue
        at = Instant(max(now, before(intent.due, lead)))
        subject = f"{workload.kind} {workload.namespace}/{workload.name}"
        replicas = "1 replica does" if intent.replicas == 1 else f"{intent.replicas} replicas do"
        text = f"nodes are asked for, if {replicas} not fit, {format_duration(lead)} before {format_rfc3339(intent.due)}"
        found.append(
            Coming(at, subject, text, f"{intent.source}: {intent.why}" if intent.why else intent.source)
        )
    return found


def _refused(state: State, now: Instant) -> list[Coming]:
    """Return the replicas, there or to come, that no node group took in the last tick."""
    if state.tick is None:
        return []
    found = []
    for answer in board_answers(state, state.tick):
        if answer.refused:
            workload = answer.workload
            subject = f"{workload.kind} {workload.namespace}/{workload.name}"
            text = f"no node group takes {counted(answer.refused, 'replica')} of it, there or to come"
            found.append(Coming(now, subject, text, answer.detail))
    return found


def _joins(state: State, now: Instant) -> list[Coming]:
    """Return when the nodes are expected that are on order and have not joined.

    Where that is not known, or was before, when they are given up.
    """
    found = []
    requests = state.memory.scale_up_requests
    views = observe(with_own_memory(state), now).groups if requests else {}
    for group, request in sorted(requests.items()):
        at, took = expected_arrival(state.memory, group), longest_join_text(state.memory, group)
        count = upcoming_nodes(state, views[group], now) if group in views else request.increase
        if not count:
            continue
        text = "1 more node has joined" if count == 1 else f"{count} more nodes have joined"
        if at is None or at < now:
            text += f", or {'is' if count == 1 else 'are'} given up"
            took = took if at is None else f"late, as {took}"
            at = Instant(max(now, request.expected_add_time))
        found.append(
            Coming(at, f"group {group}", text, f"asked for at {format_rfc3339(request.time)}; {took}")
        )
    return found


def _leavers(state: State, now: Instant) -> list[Coming]:
    needed_for = state.settings.scale_down_unneeded_time
    found = []
    for name, since in sorted(state.memory.scale_down.unneeded.items()):
        at = Instant(max(now, after(since, needed_for)))
        text = "may be given back, if it stays unneeded and no delay holds it"
        found.append(Coming(at, f"node {name}", text, f"unneeded since {format_rfc3339(since)}"))
    return found
