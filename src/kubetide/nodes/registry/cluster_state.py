"""Cluster state: present, target and upcoming nodes of each group.

``observe`` compares what the cloud says with what has registered, keeps the times since when
something has been wrong in ``Memory``, and returns a ``ClusterView`` of this tick.

Source: Cluster Autoscaler's cluster state registry.
"""

from __future__ import annotations

from kubetide.nodes.facts.nodes import is_suspended
from kubetide.nodes.memory import MOST_JOINS, IncorrectSize, ScaleUpRequest
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import drop_stale, is_backed_off
from kubetide.nodes.registry.failures import (
    Findings,
    max_provision_time,
    max_startup_time,
    note_failed,
    time_out,
)
from kubetide.nodes.registry.known_nodes import KnownNodes, copied
from kubetide.nodes.registry.late_nodes import late_machines, note_late, note_registered
from kubetide.nodes.registry.stock_outs import forget_old_shortages
from kubetide.nodes.registry.view import ClusterView, Counts, GroupView
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.ports.cloud import NodeGroup, instance_id
from kubetide.units.time import Duration, Instant, after, between, instant_of


def observe(state: State, now: Instant) -> ClusterView:
    """Return the view of this tick, and update the registry's memory."""
    memory = state.memory
    memory.backoff = drop_stale(memory.backoff, now, state.settings)
    forget_old_shortages(state, now)
    known = state.known_nodes(now)
    _note_unregistered(state, known, now)
    total, counts = _counts(state, known, now)
    for group_id, group in state.groups.items():
        limit = max_provision_time(group, state.settings)
        for instance in (group.instances or ()) if memory.unregistered_since else ():
            since = memory.unregistered_since.get(instance.provider_id)
            if since is None:
                continue
            # One that is to be left alone is never overdue, so nothing removes it.
            overdue = instance.managed and after(since, limit) < now
            for into in (counts[group_id], total):
                kind = into.long_unregistered if overdue else into.unregistered
                kind.append(instance.provider_id)
    for group_id, group in state.groups.items():
        counts[group_id].late = late_machines(state, group, counts[group_id], now)
    findings = Findings()
    if known.failed is None:
        known.failed = {
            group_id: found
            for group_id, group in state.groups.items()
            if (
                found := tuple(
                    i for i in group.instances or () if i.state == "Creating" and i.error is not None
                )
            )
        }
    failed = dict(known.failed)
    _recover_requests(state, counts, findings, now)
    timed_out = _settle_requests(state, counts, findings, now)
    note_late(state, counts, findings, now)
    note_failed(state, failed, findings, now)
    views = {
        group_id: _group_view(state, group, counts[group_id]) for group_id, group in state.groups.items()
    }
    _note_incorrect_sizes(state, views, now)
    allowed = state.settings.max_total_unready_percentage / 100.0 * len(state.nodes)
    healthy = not (total.unready > state.settings.ok_total_unready_count and total.unready > allowed)
    return ClusterView(
        views, total, healthy, findings.events, findings.reasons, timed_out, failed, tuple(findings.failures)
    )


def recalculate(state: State, view: ClusterView) -> None:
    """Update sizes, requests and health after calls to the cloud; the tick's counts stay."""
    for group_id, group_view in view.groups.items():
        group_view.group = state.groups[group_id]
        group_view.request = state.memory.scale_up_requests.get(group_id)
        group_view.healthy = _is_healthy(group_view, state.settings)


def upcoming_nodes(state: State, view: GroupView, now: Instant) -> int:
    """Return the number of upcoming nodes: only of a group with an open request and without backoff."""
    group_id, counts = view.group.id, view.counts
    if group_id not in state.memory.scale_up_requests or is_backed_off(
        state.memory.backoff.get(group_id), now
    ):
        return 0
    # The target is without machines on their way out: their nodes stand for none of those that are asked for.
    late = len(counts.late) if state.settings.replace_late_nodes else 0
    return max(0, _missing(view.group, counts) - len(counts.long_unregistered) - late)


def _missing(group: NodeGroup, counts: Counts) -> int:
    """Return how many of the machines asked for have not joined and started, those that are overdue with them."""
    joined = counts.ready + counts.unready + counts.suspended + counts.left_alone - counts.leaving
    return group.target_size - joined


def is_scaling_up(state: State, view: GroupView) -> bool:
    """Return whether requested nodes have not all joined yet, as far as the registry knows."""
    coming = _missing(view.group, view.counts) - len(view.counts.long_unregistered)
    return view.group.id in state.memory.scale_up_requests and coming > 0


def _counts(state: State, known: KnownNodes, now: Instant) -> tuple[Counts, dict[str, Counts]]:
    """Count the nodes by what state they are in, all of them and by group."""
    if known.counts is not None:
        total, counts = known.counts
        return copied(total), {group: copied(one) for group, one in counts.items()}
    total = Counts()
    counts = {group: Counts() for group in state.groups}
    for name in sorted(state.nodes):
        group_id = state.group_of(name)
        node = state.nodes[name]
        mine = counts[group_id] if group_id is not None else None
        lister = state.lister_of(name)
        if lister is not None and not state.is_leaving(name):
            # Upstream counts it nowhere: each scale-up of such a group would time out, and the group seem unhealthy.
            counts[lister].left_alone += 1
        limit = max_startup_time(state.groups.get(group_id or ""), state.settings)
        deleted = not state.has_instance(name)
        _count_node(node, deleted=deleted, limit=limit, into=(total, mine), state=state, now=now)
    if not total.not_started:
        # A node that is starting may be over its time later; nothing else waits for the time.
        known.counts = copied(total), {group: copied(one) for group, one in counts.items()}
    return total, counts


def _note_unregistered(state: State, known: KnownNodes, now: Instant) -> None:
    if known.all_registered and not state.memory.unregistered_since:
        return
    registered = {instance_id(node): None for node in state.nodes.values()}
    former = state.memory.unregistered_since
    found: dict[str, Instant] = {}
    for group_id, group in state.groups.items():
        for instance in group.instances or ():
            machine = instance.provider_id
            if machine in registered:
                if machine in former:
                    note_registered(state, group_id, between(former[machine], now), now)
            elif instance.state != "Deleting" and instance.error is None:
                found[machine] = former.get(machine, now)
    state.memory.unregistered_since = found
    known.all_registered = not state.memory.unregistered_since


def _count_node(
    node: Node,
    *,
    deleted: bool,
    limit: Duration,
    into: tuple[Counts | None, ...],
    state: State,
    now: Instant,
) -> None:
    why = state.health(node.metadata.name).unready
    created = instant_of(node.metadata.creation_timestamp)
    starting = bool(why) and created is not None and after(created, limit) > now
    leaving, suspended = state.is_leaving(node.metadata.name), is_suspended(node)
    for counts in into:
        if counts is None:
            continue
        counts.registered += 1
        if deleted:
            counts.being_deleted += 1
        elif suspended:
            counts.suspended += 1
            counts.leaving += leaving
        elif not why:
            counts.ready += 1
            counts.leaving += leaving
        elif starting:
            counts.not_started.append(node.metadata.name)
        else:
            counts.unready += 1
            counts.leaving += leaving
            counts.resource_unready += why == "ResourceUnready"


def _recover_requests(state: State, counts: dict[str, Counts], findings: Findings, now: Instant) -> None:
    """Take nodes that are on their way at the first look as asked for by an earlier process (--recover-scale-ups).

    The first look at a group is when the cloud could read it. Upstream counts upcoming nodes only of its own requests,
    so after a restart it buys the same nodes again.
    """
    memory = state.memory
    if not state.settings.recover_scale_ups or memory.unrecovered == ():
        return
    looked_for = tuple(state.groups) if memory.unrecovered is None else memory.unrecovered
    groups = [state.groups[one] for one in looked_for if one in state.groups]
    memory.unrecovered = tuple(group.id for group in groups if group.stale)
    for group in groups:
        coming = _missing(group, counts[group.id])
        if coming > 0 and not group.stale and group.id not in memory.scale_up_requests:
            until = after(now, max_provision_time(group, state.settings))
            memory.scale_up_requests[group.id] = ScaleUpRequest(coming, now, until, recovered=True)
            findings.reasons.append(reason("ScaleUpRecovered", group.id, nodes=coming))


def _settle_requests(
    state: State, counts: dict[str, Counts], findings: Findings, now: Instant
) -> tuple[tuple[str, ScaleUpRequest], ...]:
    """End the requests whose nodes have all joined, and those that are overdue, which it gives."""
    timed_out = []
    memory = state.memory
    for group_id in sorted(memory.scale_up_requests):
        request = memory.scale_up_requests[group_id]
        group = state.groups.get(group_id)
        # A machine that is overdue has not fulfilled the request, which times out for it.
        if group is None or _missing(group, counts[group_id]) <= 0:
            del memory.scale_up_requests[group_id]
            # A late machine that was replaced does not tell how long nodes take.
            if group is not None and not request.recovered and group_id not in memory.late:
                took = between(request.time, now)
                memory.join_times[group_id] = (*memory.join_times.get(group_id, ()), took)[-MOST_JOINS:]
        elif request.expected_add_time < now:
            time_out(state, group_id, request, findings, now)
            timed_out.append((group_id, request))
    return tuple(timed_out)


def _group_view(state: State, group: NodeGroup, counts: Counts) -> GroupView:
    view = GroupView(group, counts, state.memory.scale_up_requests.get(group.id))
    view.healthy = _is_healthy(view, state.settings)
    return view


def is_known(counts: Counts) -> bool:
    """Return whether any node or machine of the group has been seen."""
    return bool(counts.registered or counts.unregistered or counts.long_unregistered)


def expected_at_least(view: GroupView) -> int:
    """Return how many nodes should have registered by now."""
    increase = view.request.increase if view.request else 0
    counts = view.counts
    return view.group.target_size - counts.left_alone - len(counts.long_unregistered) - increase


def _is_healthy(view: GroupView, settings: Settings) -> bool:
    counts = view.counts
    if not is_known(counts):
        return view.group.target_size == 0 or expected_at_least(view) == 0
    missing = max(0, expected_at_least(view) - counts.ready - counts.suspended)
    known = counts.ready + counts.unready + len(counts.not_started) + counts.suspended
    share = settings.max_total_unready_percentage / 100.0 * known
    return not (missing > settings.ok_total_unready_count and missing > share)


def _note_incorrect_sizes(state: State, views: dict[str, GroupView], now: Instant) -> None:
    former = state.memory.incorrect_sizes
    found: dict[str, IncorrectSize] = {}
    for group_id, view in views.items():
        current, target = view.counts.registered + view.counts.left_alone, view.group.target_size
        if not is_known(view.counts):
            continue  # upstream looks at no group of which it has seen nothing
        waiting = len(view.counts.unregistered) + len(view.counts.long_unregistered)
        if target - waiting <= current <= target:
            continue
        before = former.get(group_id)
        same = before is not None and (before.current, before.expected) == (current, target)
        found[group_id] = before if same and before is not None else IncorrectSize(current, target, now)
    state.memory.incorrect_sizes = found
