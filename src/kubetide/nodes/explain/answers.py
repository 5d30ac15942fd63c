"""Answers on demand: why a pod waits, why a node stays or goes, what a group can do.

Everything is decided again on a copy of the state; the state that is asked about is only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

import msgspec
from msgspec.structs import replace

from kubetide.nodes.explain.blockers import detail_of, fix_for
from kubetide.nodes.explain.cluster_health import unhealthy_now, unhealthy_text
from kubetide.nodes.explain.created_groups import takers_sentence
from kubetide.nodes.explain.node_explanation import NodeExplanation
from kubetide.nodes.explain.placed_pods import placed_sentence
from kubetide.nodes.explain.prospects import (
    failures_sentence,
    filling_sentence,
    last_simulated_verdict,
    price_of,
    removal_sentence,
    unlooked_sentence,
)
from kubetide.nodes.explain.removal_trial import remaining_obstacle
from kubetide.nodes.explain.requests import consumer_sentence
from kubetide.nodes.explain.reserved_capacity import BOOKED, is_booking, reserved_text
from kubetide.nodes.explain.running_pods import running_lines
from kubetide.nodes.explain.unready_nodes import unready_text
from kubetide.nodes.explain.waiting.awaited_node import in_vain_text, nominated_sentence, upcoming_text
from kubetide.nodes.explain.waiting.counterfactual import CopyOnDemand, Supposing
from kubetide.nodes.explain.waiting.equivalent_groups import SharedWaysOut, equivalence_of
from kubetide.nodes.explain.waiting.movable_pods import room_text
from kubetide.nodes.explain.waiting.not_considered import not_considered_sentence, not_in_tick_sentence
from kubetide.nodes.explain.waiting.way_out import WayOut
from kubetide.nodes.facts.nodes import is_being_deleted, tainted_for_deletion
from kubetide.nodes.facts.pods import is_daemon_set_pod
from kubetide.nodes.reasons import FILTERED_OUT, NO_GROUPS
from kubetide.nodes.scale_up.tick import Tick, Verdict
from kubetide.nodes.state import State
from kubetide.objects.meta import Key, key_of
from kubetide.scheduling import Shortfall
from kubetide.units.time import Instant, format_rfc3339

_MOST_OBSTACLES = 3
_CONSTRAINTS = "ask less, drop a constraint, or add a group that meets all of them"

_NO_NODE_LEFT = (
    "its nodes would take it, but the limits leave no node for it beyond those for the pods before it"
)


class GroupVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one group on a pod.

    Attributes:
        takes: Whether a new node of the group would take it.
        why: The first rule that refuses, with its numbers, in words; empty when it takes the pod.
        reasons: Upstream's words for it.
        plugin: The scheduler's plugin, when it is one that refuses.
        shortfalls: What is short: requested, free, allocatable.
        template: Who says what the group's nodes look like.
        way_out: The smallest change that would help.
        would_be: Whether the group does not exist and could be created.
    """

    group: str
    takes: bool
    why: str = ""
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    template: str = ""
    way_out: WayOut | None = None
    would_be: bool = False


class PodExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod runs or waits where it does.

    Attributes:
        way_out: The smallest verified change over all groups; of equal ones that with the cheaper node.
        cost_summary: What is bought for it and all other pods together, and how far that is from the least
            possible price; empty unless the expander plans for all groups at once.
        without_nodes: What a person can do about a pod that no change of a request or of a group helps; empty otherwise.
        no_candidates: Why no group could be created for it, where the loop may create groups.
        room: How the nodes of a group at its maximum get room for it, where that group would take it; empty otherwise.
    """

    namespace: str
    name: str
    status: str
    """placed, nominated, fits, waits, helped, refused, or ignored."""
    sentence: str
    result: str = ""
    groups: tuple[GroupVerdict, ...] = ()
    way_out: WayOut | None = None
    cost_summary: str = ""
    no_candidates: str = ""
    without_nodes: str = ""
    room: str = ""


def explain_pod(
    state: State,
    key: Key,
    now: Instant,
    *,
    share_ways_out: bool = False,
    shared_copy: CopyOnDemand | None = None,
) -> PodExplanation:
    """Explain one pod.

    Args:
        state: What is decided on, which is only read.
        key: Of the pod.
        now: The time of the decision.
        share_ways_out: Whether equivalent groups share one.
        shared_copy: The copy of the same state and time that explanations of other pods use, too; None for one of its own.

    Raises: KeyError for an unknown pod.
    """
    pod = state.pods[key]
    namespace, name = key
    if pod.spec.node_name:
        return PodExplanation(
            namespace=namespace, name=name, status="placed", sentence=placed_sentence(state, pod)
        )
    if sentence := nominated_sentence(state, pod):
        return PodExplanation(namespace=namespace, name=name, status="nominated", sentence=sentence)
    if sentence := not_considered_sentence(state, pod):
        return PodExplanation(namespace=namespace, name=name, status="ignored", sentence=sentence)
    supposing = Supposing((shared_copy or CopyOnDemand(state, now)).copy, key)
    tick = supposing.unchanged_runs()
    if (fits := _fits(state, tick, key, now)) is not None:
        return fits
    if sentence := consumer_sentence(state, pod):
        return PodExplanation(namespace=namespace, name=name, status="ignored", sentence=sentence)
    verdict = next((one for one in tick.verdicts if _holds(one, key)), None)
    if verdict is None and (tick.result != "ScaleUpLimitedByMaxNodesTotal" or is_daemon_set_pod(pod)):
        return PodExplanation(
            namespace=namespace,
            name=name,
            status="ignored",
            sentence=not_in_tick_sentence(state, tick, pod, now),
            result=tick.result,
        )
    ways_out: Supposing | SharedWaysOut = supposing
    if share_ways_out:
        ways_out = SharedWaysOut(supposing, partial(equivalence_of, state, tick, pod, verdict))
    halt = unhealthy_text(state, tick.view)
    found = _by_group(state, ways_out, tick, key, verdict)
    return replace(found, sentence=f"{halt} {found.sentence}") if halt else found


def _last_obstacles(groups: Sequence[GroupVerdict]) -> list[str]:
    """Return what the groups say once all that can be put right is, each answer once."""
    said = [
        one.way_out.remaining if one.way_out is not None else one.why for one in groups if not one.would_be
    ]
    return list(dict.fromkeys(filter(None, said)))


def _with_expander(state: State, obstacle: str) -> str:
    """Return an obstacle, with the expanders where one of them left no group."""
    return f"{obstacle} by --expander={state.settings.expander}" if obstacle == FILTERED_OUT else obstacle


def _fits(state: State, tick: Tick, key: Key, now: Instant) -> PodExplanation | None:
    """Return on which node, present or upcoming, a pod fits; None if it fits none."""
    namespace, name = key
    for placed, node in tick.demand.placed:
        if key_of(placed) == key:
            upcoming = tick.upcoming_nodes.get(node)
            sentence = (
                f"It fits on node {node}: the scheduler binds it there when it looks at the pod again."
                if upcoming is None
                else f"It waits for a node of group {upcoming} that is on its way: {upcoming_text(state, tick.view.groups[upcoming], now)}{in_vain_text(state, upcoming, placed)}."
            )
            return PodExplanation(
                namespace=namespace,
                name=name,
                status="fits" if upcoming is None else "waits",
                sentence=sentence,
                result=tick.result,
            )
    return None


def _by_group(
    state: State, supposing: Supposing | SharedWaysOut, tick: Tick, key: Key, verdict: Verdict | None
) -> PodExplanation:
    """Return which groups take a pod, and what would help if none does."""
    namespace, name = key
    # Ways out are found by deciding again, which leaves another tick.
    cost_summary, no_candidates = _cost_text(tick, key), tick.no_candidates
    groups = tuple(_group_verdict(tick, group, verdict, supposing) for group in tick.views)
    ways_out = [one.way_out for one in groups if one.way_out is not None and one.way_out.verified]
    best = min(ways_out, key=lambda one: (one.effort, _price(state, one.group), one.group), default=None)
    takers = [one.group for one in groups if one.takes and not one.would_be]
    created = [one.group for one in groups if one.takes and one.would_be]
    without_nodes = room = ""
    if takers or created:
        sentence = takers_sentence(takers, created, tick)
    elif not groups:
        sentence = f"No group takes it: {NO_GROUPS}."
    elif best is not None:
        sentence = f"No group takes it. What would help: {best.text_with_group}."
        room = room_text(state, best.group) if best.only_maximum else ""
    else:
        said = [_with_expander(state, one) for one in _last_obstacles(groups)]
        listed = f": {'; '.join(said[:_MOST_OBSTACLES])}" if said else ""
        sentence = f"No group takes it, and no change is known that would help{listed}."
        without_nodes = _CONSTRAINTS if len(said) != 1 else f"put this right, which no node does: {said[0]}"
    return PodExplanation(
        namespace=namespace,
        name=name,
        status="helped" if takers or created else "refused",
        sentence=sentence,
        result=tick.result,
        groups=groups,
        way_out=None if takers or created else best,
        cost_summary=cost_summary,
        no_candidates=no_candidates,
        without_nodes=without_nodes,
        room=room,
    )


def explain_node(state: State, name: str, now: Instant) -> NodeExplanation:
    """Explain one node by the last evaluation and the deletions in flight. Raises KeyError for an unknown node."""
    found = _node(state, name, now)
    halt = unhealthy_now(state, now) if found.status != "deleting" else ""
    way_out = fix_for(
        BOOKED if is_booking(state, found.blocking_pod) else found.blocking_reason or found.reason
    )
    return replace(
        found,
        sentence=f"{halt} {found.sentence}".lstrip(),
        price_per_hour=price_of(state, found.group),
        way_out=way_out,
        then=remaining_obstacle(state, name, found.reason, now, blocked=bool(found.blocking_pod))
        if way_out
        else None,
        goes=removal_sentence(state, name, found.reason, found.blocking_pod)
        if found.status != "deleting"
        else "",
        failed=failures_sentence(state, name),
        filled=filling_sentence(state.nodes[name]),
        reserved=reserved_text(state, name),
        consolidated=state.memory.consolidation.reasons.get(name, ""),
        unready=unready_text(state, name),
        running=running_lines(state, name),
    )


def _node(state: State, name: str, now: Instant) -> NodeExplanation:
    node = state.nodes[name]
    group = state.group_of(node.metadata.name) or ""
    memory = state.memory.scale_down
    deletion = memory.deletions.get(name)
    if deletion is not None and not deletion.in_flight:
        return NodeExplanation(
            node=name,
            group=group,
            status="unneeded",
            sentence=f"Its removal is advised since {format_rfc3339(deletion.since)}; this run only advises, so it "
            "removes nothing, and decides all else as if somebody did.",
            since=memory.unneeded.get(name, deletion.since),
        )
    if deletion is not None:
        return NodeExplanation(
            node=name,
            group=group,
            status="deleting",
            sentence=f"It is being deleted, as decided at {format_rfc3339(deletion.since)}; phase: {deletion.phase}.",
            since=deletion.since,
        )
    tainted = tainted_for_deletion(node)
    if tainted is not None and is_being_deleted(node, now):
        return NodeExplanation(
            node=name,
            group=group,
            status="deleting",
            sentence=f"It is being deleted: it is tainted for it since {format_rfc3339(tainted)}, and the cloud "
            "still has to take it away.",
            since=tainted,
        )
    since = memory.unneeded.get(name)
    found = next((one for one in memory.status.unremovable if one.node == name), None)
    if found is not None:
        before = last_simulated_verdict(state, found)
        return NodeExplanation(
            node=name,
            group=group,
            status="unneeded" if since is not None else "stays",
            sentence=f"It stays: {found.reason}.{detail_of(state, found, before)}",
            reason=found.reason,
            blocking_pod=before.blocking_pod,
            blocking_reason=before.blocking_reason,
            utilization=found.utilization if found.utilization is not None else before.utilization,
            since=since,
        )
    if since is not None:
        why = memory.status.why or memory.status.result
        return NodeExplanation(
            node=name,
            group=group,
            status="unneeded",
            sentence=f"It is unneeded since {format_rfc3339(since)}; it does not go now: {why}.",
            since=since,
        )
    sentence, reason = unlooked_sentence(state, name, group)
    return NodeExplanation(node=name, group=group, status="stays", sentence=sentence, reason=reason)


def _price(state: State, group_id: str) -> float:
    """Return the price of the group's next node; one that is not known comes last."""
    price = price_of(state, group_id)
    return inf if price is None else price


def _holds(verdict: Verdict, key: Key) -> bool:
    return any(key_of(pod) == key for pod in verdict.pods.pods)


def _group_verdict(
    tick: Tick, group: str, verdict: Verdict | None, supposing: Supposing | SharedWaysOut
) -> GroupVerdict:
    template = tick.templates[group]
    source = "" if template is None else template.source
    skipped = tick.skipped.get(group)
    would_be = group in tick.would_be
    # A group that could be created is what it is: another candidate is nearer than a change of it.
    way_out = None if would_be else supposing.way_out(group)
    if verdict is not None and skipped is None and group in verdict.accepted:
        if way_out is None or not way_out.only_limits:
            return GroupVerdict(group=group, takes=True, template=source, would_be=would_be)
        return GroupVerdict(group=group, takes=False, why=_NO_NODE_LEFT, template=source, way_out=way_out)
    if verdict is None:
        words = "max total nodes in cluster reached"
        return GroupVerdict(
            group=group, takes=False, why=words, reasons=(words,), template=source, way_out=way_out
        )
    if skipped is not None:
        behind = verdict.skipped_refuse.get(group)
        why = ", ".join(skipped)
        if behind is None:
            return GroupVerdict(
                group=group,
                takes=False,
                why=why,
                reasons=skipped,
                template=source,
                way_out=way_out,
                would_be=would_be,
            )
        why, reasons, refusal = (
            f"{why}, and its nodes would not take it either: {behind.text}",
            (*skipped, *behind.reasons),
            behind.refusal,
        )
    else:
        rejection = verdict.rejected[group]
        why, reasons, refusal = rejection.text, rejection.reasons, rejection.refusal
    return GroupVerdict(
        group=group,
        takes=False,
        why=why,
        reasons=reasons,
        plugin="" if refusal is None else refusal.plugin,
        shortfalls=() if refusal is None else refusal.numbers,
        template=source,
        way_out=way_out,
        would_be=would_be,
    )


def _cost_text(tick: Tick, key: Key) -> str:
    cost_summary = tick.cost_summary
    if cost_summary is None or not tick.chosen:
        return ""
    nodes = sum(option.nodes for option in tick.chosen)
    own = [option.group.id for option in tick.chosen if key in map(key_of, option.pods)]
    return (
        f"For all waiting pods together {nodes} {'node' if nodes == 1 else 'nodes'} of "
        f"{len(tick.chosen)} {'group' if len(tick.chosen) == 1 else 'groups'} are bought for {cost_summary.price:.4f} an hour"
        f"{f', its own of group {own[0]}' if own else ', none of them for it'}. The same pods cost at least "
        f"{cost_summary.bound:.4f} ({cost_summary.bound_by}), so this costs at most {cost_summary.gap:.2%} too much."
    )
