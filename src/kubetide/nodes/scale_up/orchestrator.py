"""Scale-up: from demand to increases.

``open_tick`` forks the snapshot and puts the upcoming nodes and what fits into it; ``plan_scale_up`` chooses what to buy.
What came of the increases is taken in by ``absorb_scale_up``.

Source: Cluster Autoscaler, RunOnce steps 14 to 16 and 18, and the scale-up orchestrator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.autoprovisioning.creation import creations
from kubetide.nodes.capacity.autoprovisioning.removal import may_remove
from kubetide.nodes.capacity.buffers.inject import update_buffers
from kubetide.nodes.capacity.provisioning.serve import SOURCE as REQUESTED
from kubetide.nodes.capacity.provisioning.serve import (
    consumer_events,
    open_requests,
    serve,
    takes_turn,
)
from kubetide.nodes.capacity.quotas import update_quotas
from kubetide.nodes.decision import AskExpander, Commands, EventRecord, Outcome
from kubetide.nodes.facts.node_capacity import amount_of
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.cluster_state import upcoming_nodes
from kubetide.nodes.registry.nominations import note_expected
from kubetide.nodes.registry.view import ClusterView, GroupView
from kubetide.nodes.scale_up.choosing.choice import choose_among, choose_groups
from kubetide.nodes.scale_up.increase.increases import command
from kubetide.nodes.scale_up.pending.degradation import holds_scale_down, holds_scale_up
from kubetide.nodes.scale_up.pending.demand_reasons import buffer_reasons, intent_reasons
from kubetide.nodes.scale_up.pending.pods import demanded_pods, place_more
from kubetide.nodes.scale_up.pending.should_scale_up import should_scale_up
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.nodes.templates.upcoming_names import upcoming_name
from kubetide.objects.meta import key_of
from kubetide.objects.node import Node
from kubetide.units.time import Instant


def open_tick(
    state: State, view: ClusterView, now: Instant, *, most: int | None = None, again: bool = False
) -> Tick:
    """Fork the snapshot and add what is certain to come: upcoming nodes, pods that fit.

    Args:
        state: The state.
        view: The registry's view.
        now: The time.
        most: How many pods are looked at; ``place_on`` goes on with the others. None for all.
        again: Whether the tick plans anew, after an increase that failed.
    """
    tick = Tick(view, all_templates(state), again=again)
    found = [template for template in tick.templates.values() if template is not None]
    state.snapshot.set_device_templates({one.node.metadata.name: one.slices for one in found if one.slices})
    state.snapshot.fork()
    state.tick = tick
    for group_view in view.groups.values():
        _add_upcoming(state, tick, group_view, upcoming_nodes(state, group_view, now))
    tick.writes = (*update_buffers(state, now), *update_quotas(state, _amount_in(state), now))
    tick.demand = demanded_pods(state, now, {**state.memory.expected, **tick.hints}, most=most)
    if tick.demand.search is None:
        note_expected(state, tick)
        tick.requests = open_requests(state, tick.demand.placed, now, again=tick.again)
    return tick


def place_on(state: State, tick: Tick, now: Instant, *, most: int | None) -> None:
    """Place the next pods of a tick that has not handled all of them."""
    place_more(state, tick.demand, now, most)
    if tick.demand.search is None:
        note_expected(state, tick)
        tick.requests = open_requests(state, tick.demand.placed, now, again=tick.again)


def plan_scale_up(state: State, tick: Tick, now: Instant, *, choosing: bool = True) -> Commands:
    """Return the increases for the demand, if any, and their reasons.

    Without ``choosing`` it ends with the options: for those who only ask what each group could do.
    """
    demand = tick.demand
    reasons: list[Reason] = [
        reason("UpcomingNodes", group, nodes=nodes) for group, nodes in tick.upcoming.items()
    ]
    reasons += intent_reasons(demand)
    reasons += buffer_reasons(demand)
    events: list[EventRecord] = []
    if demand.placed:
        reasons.append(reason("PodsFitExisting", pods=len(demand.placed)))
    if demand.too_new:
        reasons.append(reason("PodsTooNew", pods=len(demand.too_new)))
    if tick.requests is not None:
        if not tick.again:  # the first plan of the tick has reported them
            events += consumer_events(demand.consumers)
        if demand.consumers:
            reasons.append(reason("PodsOfRequests", pods=len(demand.consumers)))
    if demand.unprocessed:
        reasons.append(reason("PodsLeftOut", pods=demand.unprocessed))
    may_buy = should_scale_up(state, tick, events, reasons, now)
    if holds_scale_up(state):
        # As upstream only after the checks: their events come all the same, and new pods hold scale-down.
        tick.result = "ScaleUpInCooldown"
        reasons.append(reason("ScaleUpLeftOut", loops=state.memory.degradation.loops))
    elif may_buy:
        if takes_turn(state, tick.requests, pods_wait=bool(demand.pods)):
            events += _serve_request(state, tick, reasons, now)
        else:
            state.phases.begin("scaleUp")
            tick.begun = state.elapsed
            events += choose_groups(state, tick, reasons, now, choosing=choosing)
    return increases_of(state, tick, events, reasons)


def increases_of(
    state: State, tick: Tick, events: Sequence[EventRecord], reasons: Sequence[Reason]
) -> Commands:
    """Return the calls of the tick's choice; if an external expander has a say, the question to it first."""
    if tick.packing is not None:
        return Commands(events=tuple(events), next_step="pack", reasons=tuple(reasons))
    if tick.asking is not None:
        asked = AskExpander(tuple(option.group.id for option in tick.asking))
        return Commands(actions=(asked,), events=tuple(events), next_step="choose", reasons=tuple(reasons))
    whole = _is_atomic(tick)
    salvo = state.settings.salvo_scale_up and tick.increases and not whole
    return Commands(
        actions=(*creations(tick), *(command(state, one, "pods", atomic=whole) for one in tick.increases)),
        events=tuple(events),
        next_step="salvo" if salvo else after_round(state),
        result=tick.result,
        reasons=tuple(reasons),
    )


def absorb_answer(tick: Tick, asked: AskExpander, outcome: Outcome) -> list[Reason]:
    """Apply the external expander's answer. Return the reasons; one of the group that is chosen comes with the choice.

    An answer without any group leaves no option; one that names only groups that were not asked about leaves all.
    Source: cluster-autoscaler, grpcplugin: ``BestOptions`` of the client.
    """
    assert tick.asking is not None, "it was asked about these"
    if outcome.status == "ok" and not outcome.groups:
        tick.asking = ()
        return [reason("ExpanderDeclined", options=len(asked.groups))]
    named = [option for option in tick.asking if option.group.id in outcome.groups]
    if outcome.status != "ok" or not named:
        why = outcome.error or "it names none of the groups"
        tick.answers += (reason("ExpanderSilent", options=len(asked.groups), why=why),)
        return []
    tick.asking = tuple(named)
    answered = reason("ExpanderAnswered", options=len(asked.groups), groups=", ".join(outcome.groups))
    tick.answers += (answered,)
    return []


def plan_choice(state: State, tick: Tick, now: Instant) -> Commands:
    """Return the increases of the options that the external expander left."""
    reasons: list[Reason] = []
    left = tick.options if tick.asking is None else tick.asking
    events = choose_among(state, tick, left, reasons, now, all_or_nothing=_is_atomic(tick))
    reasons += _not_buyable(tick)
    return increases_of(state, tick, events, reasons)


def _serve_request(state: State, tick: Tick, reasons: list[Reason], now: Instant) -> list[EventRecord]:
    """Answer the request whose turn it is; pods without a place wait for the next tick."""
    assert tick.requests is not None, "it is the turn of one"
    tick.result, unplaced = serve(state, tick.requests, now)
    tick.demand.pods = unplaced
    tick.demand.virtual.update(dict.fromkeys(map(key_of, unplaced), REQUESTED))
    if not unplaced:
        return []
    state.phases.begin("scaleUp")
    events = choose_groups(state, tick, reasons, now, all_or_nothing=True)
    if tick.asking is None:
        reasons += _not_buyable(tick)
    return events


def _not_buyable(tick: Tick) -> list[Reason]:
    """Say that no purchase holds all pods of the request whose turn it is; nothing where one does, or it is none's turn."""
    if tick.increases or tick.requests is None or tick.requests.picked is None or not tick.requests.buying:
        return []
    meta = tick.requests.picked.metadata
    return [reason("RequestNotBuyable", f"{meta.namespace}/{meta.name}", pods=len(tick.demand.pods))]


def after_round(state: State) -> Literal["", "scale_down", "consolidate", "min_size", "remove_groups"]:
    """Return the step that follows the last increase."""
    takes_down = state.settings.scale_down_enabled and not holds_scale_down(state)
    return "scale_down" if takes_down else after_scale_down(state)


def after_scale_down(state: State) -> Literal["", "consolidate", "min_size", "remove_groups"]:
    """Return the step that follows scale-down."""
    enabled = state.settings.consolidation_enabled and state.settings.scale_down_enabled
    return "consolidate" if enabled else after_consolidation(state)


def after_consolidation(state: State) -> Literal["", "min_size", "remove_groups"]:
    """Return the step that follows consolidation."""
    return "min_size" if state.settings.enforce_node_group_min_size else after_min_size(state)


def after_min_size(state: State) -> Literal["", "remove_groups"]:
    """Return the step that follows the increases to the minimum."""
    return "remove_groups" if may_remove(state) else ""


def _amount_in(state: State) -> Callable[[Node, str], int]:
    label = state.settings.gpu_label
    return lambda node, name: amount_of(node, name, label)


def _add_upcoming(state: State, tick: Tick, view: GroupView, count: int) -> None:
    template = tick.templates[view.group.id]
    planned = state.memory.planned.pop(view.group.id, ())[-count:] if count else ()
    if planned:
        state.memory.planned[view.group.id] = planned
    if not count or template is None:
        return
    for name in view.counts.not_started:
        # A template copy stands for it until it has started.
        state.snapshot.remove_node(name)
    tick.upcoming[view.group.id] = count
    names = [upcoming_name(view.group.id, number) for number in range(count)]
    state.snapshot.add_templates(template.node, template.pods, names)
    for number, name in enumerate(names):
        tick.upcoming_nodes[name] = view.group.id
        tick.hints.update(dict.fromkeys(planned[number] if number < len(planned) else (), name))


def _is_atomic(tick: Tick) -> bool:
    return tick.requests is not None and tick.requests.buying
