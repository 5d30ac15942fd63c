"""Node groups, pending pods, capacity that is asked for, and leaving or blocked nodes, for the page of ``kubetide status``."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.loop.status import MOST_NAMED, Cell, Overview, Table
from kubetide.nodes.core import NodesCore
from kubetide.nodes.explain.capacity_overview import capacity_tables
from kubetide.nodes.explain.cluster_health import unhealthy_text
from kubetide.nodes.explain.equivalent_pods import explain_equivalent_pods
from kubetide.nodes.explain.placed_pods import lingering_sentence
from kubetide.nodes.explain.prospects import TIME_ALONE, last_simulated_verdict, price_of, removal_time
from kubetide.nodes.explain.reserved_capacity import blocker_text
from kubetide.nodes.explain.waiting.counterfactual import CopyOnDemand
from kubetide.nodes.facts.pods import is_unschedulable
from kubetide.nodes.reasons import NO_GROUPS
from kubetide.nodes.records.export import with_own_memory
from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.registry.cluster_state import observe, upcoming_nodes
from kubetide.nodes.registry.stock_outs import out_of_stock_texts
from kubetide.nodes.registry.view import GroupView
from kubetide.nodes.state import State
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod
from kubetide.units.lists import listed
from kubetide.units.time import (
    Instant,
    between,
    format_duration,
    format_rfc3339,
    parse_rfc3339,
    whole_seconds,
)

_MOST_EXPLAINED, _FEW_EXPLAINED = 10, 3
"""Workloads whose waiting pods are explained: each takes decisions on a copy of the state, so in a large cluster they are few."""

_LARGE = 1_000
"""Pods times groups of a cluster in which this takes long; the page is drawn again every few seconds."""


def _tables(core: NodesCore, now: Instant) -> tuple[Table, ...]:
    state = core.state
    # The look at the groups brings the memory of the registry up to date.
    return (
        _groups(with_own_memory(state), now),
        _waiting(state, now),
        *capacity_tables(state, now),
        _nodes(state),
    )


def _groups(state: State, now: Instant) -> Table:
    cluster = observe(state, now)
    views = cluster.groups
    rows: list[tuple[Cell, ...]] = []
    for name, view in sorted(views.items()):
        group = view.group
        rows.append(
            (
                name,
                group.target_size,
                group.min_size,
                group.max_size,
                view.counts.ready,
                upcoming_nodes(state, view, now),
                group.price_per_hour,
                _state_of(state, view, now),
            )
        )
    held = [name for name, view in sorted(views.items()) if _holds_back(state, view, now)]
    halt = unhealthy_text(state, cluster)
    groups = f"Groups without new nodes for now: {listed(held, MOST_NAMED)}." if held else ""
    if not views and not state.settings.node_autoprovisioning_enabled:
        groups = f"{NO_GROUPS[0].upper()}{NO_GROUPS[1:]}."
    sentence = " ".join(filter(None, (halt, groups)))
    columns = ("node group", "size", "min", "max", "ready", "upcoming", "price/h", "state")
    return Table("node groups", columns, tuple(rows), sentence)


def _holds_back(state: State, view: GroupView, now: Instant) -> list[str]:
    """Return why the group gets no new nodes although it may be larger."""
    entry = state.memory.backoff.get(view.group.id)
    # A shortage is remembered for longer than a backoff lasts.
    parts = out_of_stock_texts(state, view.group, now)
    if entry is not None and is_backed_off(entry, now):
        parts.append(f"backoff until {format_rfc3339(entry.until)}: {entry.error_code or entry.error_class}")
    if not view.healthy:
        parts.append("unhealthy")
    return parts


def _state_of(state: State, view: GroupView, now: Instant) -> str:
    parts = _holds_back(state, view, now)
    if view.counts.late:
        parts.append(f"{len(view.counts.late)} late")
    if view.counts.unready:
        parts.append(f"{view.counts.unready} not ready")
    if view.group.target_size >= view.group.max_size:
        parts.append("at its maximum")
    return "; ".join(parts)


def _waiting(state: State, now: Instant) -> Table:
    alike: dict[tuple[str, str], list[str]] = {}
    waiting: list[Pod] = []
    for (namespace, name), pod in sorted(state.pending.items()):
        if is_unschedulable(pod, state.settings):
            waiting.append(pod)
            owner = controller_of(pod.metadata)
            alike.setdefault((namespace, name if owner is None else owner.name), []).append(name)
    rows: list[tuple[Cell, ...]] = []
    shared_copy = CopyOnDemand(state, now)
    most = _MOST_EXPLAINED if len(state.pods) * len(state.groups) < _LARGE else _FEW_EXPLAINED
    for index, ((namespace, owner_name), pods) in enumerate(alike.items()):
        why = f"not asked, as each answer takes decisions of its own: this page has the first {most}"
        if index < most:
            keys = [(namespace, name) for name in pods]
            why = explain_equivalent_pods(state, keys, now, shared_copy).sentence
        # Of pods of one workload the last one has the most before it.
        ask = f"ask: kubetide explain pod {namespace}/{pods[-1]}"
        rows.append((f"{namespace}/{owner_name}", len(pods), why, ask))
    columns = ("pods of", "count", "why", "more")
    sentence = " ".join(filter(None, (_waiting_sentence(waiting, now), lingering_sentence(state, now))))
    return Table("waiting pods", columns, tuple(rows), sentence)


def _waiting_sentence(pods: Sequence[Pod], now: Instant) -> str:
    if not pods:
        return ""
    waits = "1 pod waits for a node" if len(pods) == 1 else f"{len(pods)} pods wait for a node"
    # Pods that are still to be created have no time.
    created = [time for pod in pods if (time := pod.metadata.creation_timestamp)]
    if not created:
        return f"{waits}."
    longest = whole_seconds(between(min(map(parse_rfc3339, created)), now))
    return f"{waits}, the longest for {format_duration(longest)}."


def _nodes(state: State) -> Table:
    memory = state.memory.scale_down
    rows: list[tuple[Cell, ...]] = []
    for name, deletion in sorted(memory.deletions.items()):
        text = f"{deletion.phase} since {format_rfc3339(deletion.since)}"
        rows.append((name, deletion.group, "going", text, price_of(state, deletion.group)))
    unremovable = {one.node: one for one in memory.status.unremovable}
    for name in sorted(memory.unneeded):
        group = state.group_of(name)
        verdict = unremovable.get(name)
        blocked = verdict is not None and last_simulated_verdict(state, verdict).blocking_pod
        if name in memory.deletions or blocked or group is None:
            continue
        at = removal_time(state, name)
        text = "" if at is None else f"may go from {format_rfc3339(at)} on"
        if verdict is not None and verdict.reason not in TIME_ALONE:
            text = f"stays: {verdict.reason}"
        rows.append((name, group, "unneeded", text, price_of(state, group)))
    for name, verdict in sorted(unremovable.items()):
        one = last_simulated_verdict(state, verdict)
        if one.blocking_pod and name in state.nodes:
            text = blocker_text(state, one.blocking_pod, one.blocking_reason)
            rows.append((name, one.group, "blocked", text, price_of(state, one.group)))
    return Table("nodes that go or are blocked", ("node", "group", "state", "why", "price/h"), tuple(rows))


OVERVIEW = Overview(_tables, lambda core: tuple(core.state.holds))
