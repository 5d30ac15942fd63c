"""The verdict of a group on the pods of a tick, in a few words."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubetide.nodes.capacity.autoprovisioning.candidates import add_candidates
from kubetide.nodes.expander import Option
from kubetide.nodes.reasons import BACKED_OFF, OUT_OF_STOCK
from kubetide.nodes.registry.stock_outs import tried_again
from kubetide.nodes.scale_up.choosing.choice import increases_within_an_hour
from kubetide.nodes.scale_up.choosing.options import evaluate_groups, find_options, group_of, group_pods
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.increase.limits import CLUSTER_WIDE_FLAGS, Headroom
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant, format_rfc3339

TAKES_THEM: Final = "takes them"


def group_lines(state: State, tick: Tick, now: Instant) -> list[str]:
    """Return a line with the verdict of each group on the tick's pods, also of groups that could be created.

    Args:
        state: A copy, whose settings are changed: skipped groups are asked, too.
        tick: With the pods as its demand.
        now: The time.
    """
    state.settings = replace(state.settings, scaleup_simulation_for_skipped_node_groups_enabled=True)
    group_pods(state, tick)
    add_candidates(state, tick)
    headroom = headroom_of(state, tick)
    evaluate_groups(state, tick, headroom, now)
    find_options(state, tick)
    return [
        f"{'group to be created,' if group in tick.would_be else 'group'} {group}: {verdict_text(state, tick, group, headroom, now)}"
        for group in tick.views
    ]


def verdict_text(state: State, tick: Tick, group: str, headroom: Headroom, now: Instant) -> str:
    """Return whether new nodes of the group would take the pods, and why not: the first reason.

    Of a group that is skipped also why its nodes would not take them anyway: lifting what it is skipped for is then no help.
    """
    if group in tick.skipped:
        behind = next(
            (one.skipped_refuse[group] for one in tick.verdicts if group in one.skipped_refuse), None
        )
        anyway = "" if behind is None else f", and its nodes would not take them either: {behind.text}"
        return f"no, {', '.join(tick.skipped[group])}{_until(state, tick, group)}{anyway}"
    for verdict in tick.verdicts:
        rejection = verdict.rejected.get(group)
        if rejection is not None:
            return f"no, {rejection.text}"
    option = next((one for one in tick.options if one.group.id == group), None)
    taken, total = 0 if option is None else len(option.pods), len(tick.demand.pods)
    if option is None or taken < total:
        return f"no, {_bound_text(state, tick, group, option)} for {taken} of the {total} pods"
    limit = _limit_text(state, option, headroom, now)
    return f"no, {limit}" if limit else TAKES_THEM


def _bound_text(state: State, tick: Tick, group: str, option: Option | None) -> str:
    """Return what leaves new nodes for a part of the pods: a limit on their number, else rules among the pods."""
    settings, nodes = state.settings, 0 if option is None else option.nodes
    growing = [group_of(state, tick, one) for one in (group, *(option.similar if option else ()))]
    maximum = sum(one.max_size for one in growing)
    shared = " with similar groups" if len(growing) > 1 else ""
    bounds = [
        (
            sum(max(0, one.max_size - one.target_size) for one in growing),
            f"its maximum of {maximum}{shared}",
        )
    ]
    if settings.max_nodes_per_scaleup > 0:
        limit = settings.max_nodes_per_scaleup
        bounds.append((limit, f"--max-nodes-per-scaleup={limit}"))
    if settings.max_nodes_total:
        limit = settings.max_nodes_total
        bounds.append((max(0, limit - len(state.snapshot)), f"--max-nodes-total={limit}"))
    most, text = min(bounds)
    return f"{text} leaves new nodes" if nodes >= most else "its new nodes have places"


def _limit_text(state: State, option: Option, headroom: Headroom, now: Instant) -> str:
    """Return which limit over all groups the option's nodes would pass; empty for none."""
    count, most = option.nodes, state.settings.max_node_increases_per_hour
    nodes = "its new node" if count == 1 else f"its {count} new nodes"
    for quota, resources in headroom.exceeded_quotas(option.template.node, count):
        return f"{nodes} would pass {quota} on {', '.join(resources)}"
    for name in headroom.exceeded_by(option.template.capacity, count):
        flag, _ = CLUSTER_WIDE_FLAGS.get(name, ("gpu-total", 1))
        return f"{nodes} would pass --{flag}"
    lately = increases_within_an_hour(state, now)
    if lately + count > most:
        return f"{nodes} would pass --max-node-increases-per-hour={most}, as {lately} were bought within the last hour"
    return ""


def _until(state: State, tick: Tick, group: str) -> str:
    """Return until when a group is not asked for nodes, where that is why it is skipped; else nothing."""
    skipped, backoff = tick.skipped[group], state.memory.backoff.get(group)
    if BACKED_OFF in skipped and backoff is not None:
        return f" until {format_rfc3339(backoff.until)}"
    if OUT_OF_STOCK in skipped:
        _, again = tried_again(state.memory.stock_outs, group_of(state, tick, group), state.settings)
        return f" until {format_rfc3339(again)}"
    return ""
