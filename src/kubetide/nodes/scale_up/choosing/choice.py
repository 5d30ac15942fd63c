"""The choice: which groups grow, capped at the limits, and balanced between similar groups."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.autoprovisioning.candidates import add_candidates, leave_out_surplus
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.expander import Context, Option, asks_service, before_service, choose, packs_all_groups
from kubetide.nodes.expander.price import PRICE
from kubetide.nodes.expander.registry import GRPC
from kubetide.nodes.facts.pods import pod_text
from kubetide.nodes.reasons import FILTERED_OUT, reason
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.scale_up.choosing.expander_context import (
    expander_context,
    priority_warnings,
    problems_of,
)
from kubetide.nodes.scale_up.choosing.options import (
    begin_packing,
    evaluate_groups,
    group_pods,
    keep_whole_options,
    pack,
)
from kubetide.nodes.scale_up.increase.balancing import balance
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.scale_up.reporting.events import max_nodes_total
from kubetide.nodes.scale_up.tick import CostSummary, Increase, Rejection, Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant, before, hours

NOT_CREATED = "not implemented"
"""Upstream's word for a group that would have to be created where the loop may not."""
GROUPS_IN_A_STEP = 64
"""How many groups are asked for options before the time is looked at again."""
MAX_TOTAL_REACHED = "max node total count already reached"


def choose_groups(
    state: State,
    tick: Tick,
    reasons: list[Reason],
    now: Instant,
    *,
    choosing: bool = True,
    all_or_nothing: bool = False,
) -> list[EventRecord]:
    """Find options, choose and cap at the limits; stores the choice in the tick and returns the events before the act.

    With ``all_or_nothing`` nothing is bought unless one purchase gives all pods a place.
    """
    headroom = headroom_of(state, tick)
    group_pods(state, tick)
    reasons += add_candidates(state, tick)
    evaluate_groups(state, tick, headroom, now)
    reasons += [
        reason("GroupSkipped", group_id, why=", ".join(words)) for group_id, words in tick.skipped.items()
    ]
    for verdict in tick.verdicts:
        pod = pod_text(verdict.pods.pods[0])
        said: dict[int, Reason] = {}
        for group_id, rejection in verdict.rejected.items():
            # Many groups refuse in the same words, and then share them.
            one = said.get(id(rejection))
            if one is None:
                why = ", ".join(rejection.reasons)
                one = said[id(rejection)] = reason("GroupRefuses", group_id, pod=pod, why=why)
            else:
                one = Reason(one.code, group_id, one.fields)
            reasons.append(one)
    if choosing and packs_all_groups(state.settings.expander):
        events = _choose_together(state, tick, headroom, reasons, now)
        if all_or_nothing:
            _drop_part(tick)
        return events
    begin_packing(state, tick)
    pack(state, tick, most=GROUPS_IN_A_STEP if choosing and not all_or_nothing else None)
    if tick.packing is not None:
        return []  # the other groups come in the next step
    return choose_of_options(
        state, tick, headroom, reasons, now, choosing=choosing, all_or_nothing=all_or_nothing
    )


def choose_of_options(
    state: State,
    tick: Tick,
    headroom: Headroom,
    reasons: list[Reason],
    now: Instant,
    *,
    choosing: bool = True,
    all_or_nothing: bool = False,
) -> list[EventRecord]:
    """Choose among the tick's options; return the events before the act."""
    if all_or_nothing:
        keep_whole_options(tick)
    reasons += [
        reason("Option", option.group.id, nodes=option.nodes, pods=len(option.pods))
        for option in tick.options
    ]
    if not tick.options:
        tick.result = "ScaleUpNoOptionsAvailable"
    events = _choose_one(state, tick, headroom, reasons, now) if choosing and tick.options else []
    if all_or_nothing and tick.asking is None:
        _drop_part(tick)
    return events


def _drop_part(tick: Tick) -> None:
    """Buy nothing where the limits, or the groups, leave some of the pods without a place."""
    nodes = sum(one.size - one.group.target_size for one in tick.increases)
    helped = sum(len(option.pods) for option in tick.chosen)
    if nodes < sum(option.nodes for option in tick.chosen) or helped < len(tick.demand.pods):
        tick.increases, tick.chosen, tick.result = [], (), "ScaleUpNoOptionsAvailable"


def _choose_one(
    state: State, tick: Tick, headroom: Headroom, reasons: list[Reason], now: Instant
) -> list[EventRecord]:
    settings = state.settings
    context = expander_context(state)
    left: Sequence[Option] = tick.options
    settled_by = ""
    if asks_service(settings.expander):
        left, settled_by = before_service(tick.options, settings.expander, context)
        if not settled_by:
            tick.asking, tick.answers = tuple(left), problems_of(state, context)
            return priority_warnings(state, context)
    return _take_best(state, tick, left, headroom, reasons, now, context=context, settled_by=settled_by)


def choose_among(
    state: State,
    tick: Tick,
    left: Sequence[Option],
    reasons: list[Reason],
    now: Instant,
    *,
    all_or_nothing: bool = False,
) -> list[EventRecord]:
    """Choose among the options that the external expander left, if any; return the events before the act."""
    tick.asking = None
    if not left:
        _choose_none(tick)
        return []
    answered = any(one.code == "ExpanderAnswered" for one in tick.answers)
    settled_by = GRPC if answered else ""
    headroom, context = headroom_of(state, tick), expander_context(state)
    events = _take_best(state, tick, left, headroom, reasons, now, context=context, settled_by=settled_by)
    if all_or_nothing:
        _drop_part(tick)
    return events


def _take_best(
    state: State,
    tick: Tick,
    options: Sequence[Option],
    headroom: Headroom,
    reasons: list[Reason],
    now: Instant,
    *,
    context: Context,
    settled_by: str,
) -> list[EventRecord]:
    settings = state.settings
    choice = choose(
        options,
        settings.expander,
        seed=settings.seed,
        now=now,
        context=context,
        draw=state.draw,
        settled_by=settled_by,
    )
    warned = priority_warnings(state, context)
    chosen = choice.option
    answers = (*tick.answers, *problems_of(state, context))
    reasons += [replace(one, subject="" if chosen is None else chosen.group.id) for one in answers]
    tick.answers = ()
    if chosen is None:
        code = "NoneRated" if choice.by == PRICE else "NoneLeft"
        reasons.append(reason(code, expander=choice.by, options=len(tick.options)))
        _choose_none(tick)
        return warned
    tick.chosen, tick.drawn_among = (chosen,), choice.drawn_among
    reasons.append(
        reason("Chosen", chosen.group.id, expander=choice.by, nodes=chosen.nodes, pods=len(chosen.pods))
    )
    count = chosen.nodes
    there = len(state.snapshot)
    if settings.max_nodes_total and there + count > settings.max_nodes_total:
        count = settings.max_nodes_total - there
        reasons.append(
            reason("Capped", chosen.group.id, requested=chosen.nodes, nodes=count, limit="max-nodes-total")
        )
        if count < 1:
            tick.result, tick.error, tick.error_type = "ScaleUpError", MAX_TOTAL_REACHED, "transientError"
            return [*warned, *max_nodes_total(state)]
    events = [*warned, *(max_nodes_total(state) if count < chosen.nodes else ())]
    count = _within_limits(state, chosen, headroom, count, reasons, now)
    if count < 1:
        tick.result, tick.error = "ScaleUpError", "the limits leave no node"
        return events
    if not chosen.group.exists and chosen.group.id not in tick.would_be:
        tick.result, tick.error, tick.error_type = "ScaleUpError", NOT_CREATED, "internalError"
        return events
    tick.increases = _increases(state, tick, chosen, count, headroom, reasons)
    return events


def _choose_none(tick: Tick) -> None:
    tick.result = "ScaleUpNoOptionsAvailable"
    for verdict in tick.verdicts:
        rated_out = dict.fromkeys(verdict.accepted, Rejection((FILTERED_OUT,)))
        verdict.rejected, verdict.accepted = {**verdict.rejected, **rated_out}, {}


def _choose_together(
    state: State, tick: Tick, headroom: Headroom, reasons: list[Reason], now: Instant
) -> list[EventRecord]:
    """Buy for all pods at once, over all groups; the limits are part of the problem."""
    settings = state.settings
    there = len(state.snapshot)
    bought_lately = increases_within_an_hour(state, now)
    hourly = max(0, settings.max_node_increases_per_hour - bought_lately)
    limits = [hourly]
    if settings.max_nodes_per_scaleup > 0:
        limits.append(settings.max_nodes_per_scaleup)
    if settings.max_nodes_total:
        limits.append(max(0, settings.max_nodes_total - there))
    from kubetide.nodes.expander.least_cost.buy import choose_fleet  # noqa: PLC0415  answers without it come sooner

    options, cost_summary = choose_fleet(state, tick, headroom, most_nodes=min(limits), now=now)
    if leave_out_surplus(state, tick, options):
        options, cost_summary = choose_fleet(state, tick, headroom, most_nodes=min(limits), now=now)
    tick.options, tick.chosen, tick.cost_summary = list(options), options, cost_summary
    reasons += _cost_reasons(options, cost_summary)
    nodes = sum(option.nodes for option in options)
    events: list[EventRecord] = []
    if cost_summary.left and settings.max_nodes_total and there + nodes >= settings.max_nodes_total:
        events = max_nodes_total(state)
    if cost_summary.left and nodes >= hourly:
        reasons.append(
            reason(
                "ScaleUpCapReached", used=bought_lately + nodes, limit=settings.max_node_increases_per_hour
            )
        )
    if not options:
        if cost_summary.left:
            tick.result, tick.error = (
                "ScaleUpError",
                MAX_TOTAL_REACHED if events else "the limits leave no node",
            )
        else:
            tick.result = "ScaleUpNoOptionsAvailable"
    tick.increases = [
        one for option in options for one in _increases(state, tick, option, option.nodes, headroom, reasons)
    ]
    return events


def _cost_reasons(options: tuple[Option, ...], cost_summary: CostSummary) -> list[Reason]:
    found = []
    nodes = sum(option.nodes for option in options)
    for option in options:
        group = option.group.id
        found.append(
            reason("Chosen", group, expander="least-cost", nodes=option.nodes, pods=len(option.pods))
        )
        found.append(
            reason(
                "ChosenTogether",
                group,
                nodes=nodes,
                groups=len(options),
                price=f"{cost_summary.price:.4f}",
                bound=f"{cost_summary.bound:.4f}",
                by=cost_summary.bound_by,
                gap=f"{cost_summary.gap:.2%}",
                greedy=f"{cost_summary.greedy_price:.4f}",
                rounds=cost_summary.rounds,
                minding=cost_summary.one_by_one,
            )
        )
    if cost_summary.cut:
        found.append(reason("SearchCut", price=f"{cost_summary.price:.4f}", gap=f"{cost_summary.gap:.2%}"))
    if cost_summary.left:
        found.append(reason("LeftForLater", pods=cost_summary.left))
    return found


def _increases(
    state: State, tick: Tick, option: Option, count: int, headroom: Headroom, reasons: list[Reason]
) -> list[Increase]:
    """Return the increases over the option's groups, and take them off the headroom.

    Similar groups may have larger nodes than the chosen one, and quotas of their own. As upstream, what one of them may
    not have is left to the next tick.
    """
    groups = [option.group, *(state.groups[group] for group in option.similar)]
    found = []
    for group, size in balance(groups, count):
        template = tick.templates.get(group.id) or option.template
        asked = size - group.target_size
        allowed = headroom.cap(template.node, asked)
        headroom.take(template.node, allowed)
        if allowed < asked:
            reasons.append(
                reason("Capped", group.id, requested=asked, nodes=allowed, limit="resource limits")
            )
        if allowed:
            found.append(Increase(group, group.target_size + allowed))
    return found


def _within_limits(
    state: State, chosen: Option, headroom: Headroom, count: int, reasons: list[Reason], now: Instant
) -> int:
    allowed = headroom.cap(chosen.template.node, count)
    if allowed < count:
        reasons.append(
            reason("Capped", chosen.group.id, requested=count, nodes=allowed, limit="resource limits")
        )
    cap = state.settings.max_node_increases_per_hour
    used = increases_within_an_hour(state, now)
    if used + allowed > cap:
        reasons.append(reason("ScaleUpCapReached", used=used, limit=cap))
        allowed = max(0, cap - used)
    if is_zero_or_max(chosen.group) and allowed < chosen.group.max_size - chosen.group.target_size:
        return 0
    return allowed


def increases_within_an_hour(state: State, now: Instant) -> int:
    """Forget older increases and return the number of nodes asked for since."""
    state.memory.increases = tuple(
        (at, nodes) for at, nodes in state.memory.increases if at > before(now, hours(1))
    )
    return sum(nodes for _, nodes in state.memory.increases)
