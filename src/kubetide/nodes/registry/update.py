"""The update step: repairs that come before any planning.

Requests that timed out, machines that could not be made, machines that never registered, targets
that no nodes ever came for. Source: Cluster Autoscaler, RunOnce steps 8 to 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import (
    Action,
    Commands,
    DecreaseTarget,
    DeleteInstances,
    EventRecord,
    Outcome,
    RemoveTaint,
)
from kubetide.nodes.facts.nodes import NOMINATION_TAINT
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.memory import Attempt, Useless
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.cluster_state import recalculate
from kubetide.nodes.registry.failures import doomed_with, is_zero_or_max, max_provision_time
from kubetide.nodes.registry.nominations import nominations
from kubetide.nodes.registry.view import ClusterView, Counts
from kubetide.nodes.scale_down.decide import forget_unneeded
from kubetide.nodes.scale_down.soft_taints import cleanup_event, startup_cleanup
from kubetide.nodes.scale_up.reporting.events import (
    cluster_unhealthy,
    failed_to_revert,
    on_status,
    unregistered_deleted,
)
from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant, after, instant_of, minutes

_STARTING = minutes(10)
"""How long no warning is given while no node is ready."""
_SETTLING = minutes(1)
"""How long the scheduler may take to use nodes that have joined."""


def plan_without_nodes(state: State, message: str, now: Instant) -> Commands:
    """Return the commands of a tick that ends as no node is ready, under --scale-up-from-zero=false.

    As upstream, it ends before the registry is asked: requests and machines that have not joined are as they were
    when it was asked last, and no time of theirs begins. Unneeded nodes are forgotten.
    """
    actions, reasons = _begin(state, now)
    forget_unneeded(state)
    state.view = ClusterView({}, Counts(), healthy=False)
    events: list[EventRecord] = []
    if not state.nodes or _is_overdue(state, now):
        events = on_status(state, "Warning", "ClusterUnhealthy", message)
    return Commands(actions=tuple(actions), events=tuple(events), reasons=tuple(reasons), result=message)


def plan_update(state: State, view: ClusterView, now: Instant) -> Commands | None:
    """Return the repairs to make first, or None if the tick can go on at once."""
    events = list(view.events)
    actions, reasons = _begin(state, now)
    reasons = [*view.reasons, *reasons]
    actions += [DecreaseTarget(group_id, request.increase, "timeout") for group_id, request in view.timed_out]
    _evaluate_attempts(state, reasons, now)
    overdue = _unregistered(state, view)
    actions += overdue
    # A group of zero or all goes as a whole: its failed machines are among those already.
    emptied = dict.fromkeys(one.group for one in overdue if is_zero_or_max(state.groups[one.group]))
    ends = False
    if not view.healthy:
        events += cluster_unhealthy(state)
        reasons.append(reason("ClusterUnhealthy", unready=view.total.unready, nodes=len(state.nodes)))
        forget_unneeded(state)
        ends = True
    else:
        for group_id, failed in view.failed.items():
            doomed = doomed_with(state.groups[group_id], failed)
            ids = tuple(instance.provider_id for instance in doomed)
            if ids and group_id not in emptied:
                force = state.settings.force_delete_failed_nodes
                actions.append(DeleteInstances(group_id, ids, "failed", force))
        fixes = _wrong_sizes(state, view, now)
        actions += fixes
        # Where the process only advises it never becomes right, and the advice about other groups must not wait for it.
        ends = any(not state.memory.incorrect_sizes[one.group].withheld for one in fixes)
    if not (actions or events or reasons):
        return None
    return Commands(
        actions=tuple(actions),
        events=tuple(events),
        next_step="" if ends else "scale_up",
        reasons=tuple(reasons),
    )


def _begin(state: State, now: Instant) -> tuple[list[Action], list[Reason]]:
    """Return what each tick does first: taints of an earlier process go, and nodes are opened to pods."""
    memory = state.memory
    actions: list[Action] = []
    if not memory.cleaned or memory.uncleaned:
        left = memory.uncleaned if memory.cleaned else None
        actions += [one for one in startup_cleanup(state, now) if left is None or (one.node, one.key) in left]
        memory.cleaned, memory.uncleaned = True, ()
    nominated, opened, reasons = nominations(state)
    return [*actions, *nominated, *opened], list(reasons)


def absorb_update(
    state: State, actions: tuple[Action, ...], results: tuple[Outcome, ...]
) -> tuple[list[EventRecord], list[Reason]]:
    """Apply the outcomes (present targets and machines); return the events, and the reasons that say what came of them."""
    events: list[EventRecord] = []
    reasons: list[Reason] = []
    cleaned = False
    for action, outcome in zip(actions, results, strict=True):
        if isinstance(action, RemoveTaint) and action.key != NOMINATION_TAINT:
            # The node is as it was until the watch says otherwise, as upstream's loop has it: nothing moves there yet.
            events += _absorb_cleanup(state, action, outcome)
        elif isinstance(action, DecreaseTarget):
            reasons += _size_reasons(action, outcome)
            if outcome.status == "ok":
                state.set_target(action.group, state.groups[action.group].target_size - action.delta)
            elif action.why == "timeout" and outcome.tried:
                events += failed_to_revert(state, action, outcome.error)
            if action.why == "size" and outcome.status == "withheld":
                wrong = state.memory.incorrect_sizes[action.group]
                state.memory.incorrect_sizes[action.group] = replace(wrong, withheld=True)
        elif isinstance(action, DeleteInstances):
            if outcome.status == "ok":
                state.drop_instances(action.group, action.provider_ids)
                cleaned = cleaned or action.why == "failed"
            if action.why == "unregistered":
                reasons += _removal_reasons(action, outcome)
                events += unregistered_deleted(state, action, outcome)
    if cleaned and state.view is not None:
        # As upstream, once failed machines were deleted; other calls count from the next tick on.
        recalculate(state, state.view)
    return events, reasons


def _size_reasons(action: DecreaseTarget, outcome: Outcome) -> list[Reason]:
    """Return what came of correcting a target; nothing of one that is lowered as a request timed out."""
    codes = {"ok": "SizeFixed", "failed": "SizeNotFixed", "withheld": "SizeFixAdvised"}
    return _outcome_reasons(codes if action.why == "size" else {}, action.group, outcome, delta=action.delta)


def _removal_reasons(action: DeleteInstances, outcome: Outcome) -> list[Reason]:
    codes = {
        "ok": "UnregisteredRemoved",
        "failed": "UnregisteredNotRemoved",
        "withheld": "UnregisteredRemovalAdvised",
    }
    found = (_outcome_reasons(codes, action.group, outcome, instance=one) for one in action.provider_ids)
    return list(chain.from_iterable(found))


def _outcome_reasons(
    codes: Mapping[str, str], group: str, outcome: Outcome, **fields: str | int
) -> list[Reason]:
    """Return what came of a repair, by the code of its status; nothing of one that was not tried."""
    code = codes.get(outcome.status)
    if code is None:
        return []
    error = {"error": outcome.error} if outcome.status == "failed" else {}
    return [reason(code, group, **fields, **error)]


def _absorb_cleanup(state: State, action: RemoveTaint, outcome: Outcome) -> list[EventRecord]:
    """Return the event of a taint that was to be taken off; one that is still there is tried again in the next tick.

    Upstream tries once. But nobody else takes it off, and no pod comes to the node until then.
    """
    if outcome.status == "ok" or state.settings.advises:
        return [cleanup_event(action, outcome)]
    state.memory.uncleaned = (*state.memory.uncleaned, (action.node, action.key))
    # What may not be written at present has not failed.
    return [] if outcome.status == "withheld" else [cleanup_event(action, outcome)]


def not_begun(state: State) -> str:
    """Return why --scale-up-from-zero=false blocks the tick; empty if there is a ready node, or it is not set."""
    if state.settings.scale_up_from_zero:
        return ""
    if not state.nodes:
        return "Cluster has no nodes."
    for name, node in state.nodes.items():
        if not node.spec.unschedulable and not state.health(name).unready:
            return ""
    return "Cluster has no ready nodes."


def _is_overdue(state: State, now: Instant) -> bool:
    started = state.memory.started
    return started is not None and after(started, _STARTING) < now


def _unregistered(state: State, view: ClusterView) -> list[DeleteInstances]:
    """Return the deletions of machines that never joined, as many as keep the group at its minimum.

    As upstream, what a request that timed out takes off the target in this tick is gone before; a cloud takes off
    no more than what has no machine.
    """
    found = []
    reverted = {group_id: request.increase for group_id, request in view.timed_out}
    for group_id, group_view in view.groups.items():
        ids = sorted(group_view.counts.long_unregistered)
        group = group_view.group
        force = state.settings.force_delete_unregistered_nodes
        size = group.target_size - reverted.get(group_id, 0)
        if size < len(group.instances or ()):
            size = group.target_size
        spare = size - group.min_size
        if not ids or (spare <= 0 and not force):
            continue
        if not force:
            ids = ids[:spare]
        overdue = [instance for instance in group.instances or () if instance.provider_id in ids]
        ids = sorted(instance.provider_id for instance in doomed_with(group, overdue))
        if not ids:
            continue
        found.append(DeleteInstances(group_id, tuple(ids), "unregistered", force))
    return found


def _wrong_sizes(state: State, view: ClusterView, now: Instant) -> list[DecreaseTarget]:
    found = []
    for group_id, wrong in sorted(state.memory.incorrect_sizes.items()):
        group_view = view.groups[group_id]
        overdue = after(wrong.first_observed, max_provision_time(group_view.group, state.settings)) < now
        waiting = len(group_view.counts.unregistered) + len(group_view.counts.long_unregistered)
        short = wrong.expected - waiting - wrong.current
        # Of a group that exists at zero or at its maximum a smaller target would be of no use.
        if overdue and short > 0 and not is_zero_or_max(group_view.group):
            found.append(DecreaseTarget(group_id, wrong.expected - wrong.current, "size"))
    return found


def _evaluate_attempts(state: State, reasons: list[Reason], now: Instant) -> None:
    """Back a group off from a kind of pods when its new nodes have joined, empty, and left all of them pending."""
    memory = state.memory
    attempts: list[Attempt] = []
    for attempt in memory.attempts:
        if attempt.group in memory.scale_up_requests or attempt.group not in state.groups:
            if attempt.group in state.groups:
                attempts.append(attempt)
            continue
        joined = attempt.joined if attempt.joined is not None else now
        if after(joined, _SETTLING) > now:
            attempts.append(
                Attempt(attempt.group, attempt.nodes, attempt.time, attempt.kind, attempt.pods, joined)
            )
            continue
        key = f"{attempt.group} {attempt.kind}"
        pending = attempt.pods and all(pod in state.pending for pod in attempt.pods)
        if pending and _are_unused(state, attempt):
            former = memory.useless.get(key)
            times = former.times + 1 if former else 1
            first, longest = (
                state.settings.initial_node_group_backoff_duration,
                state.settings.max_node_group_backoff_duration,
            )
            pause = Duration(min(first * 2 ** min(times - 1, 10), longest))
            memory.useless[key] = Useless(times, after(now, pause))
            reasons.append(reason("LeftPending", attempt.group, nodes=attempt.nodes, pods=len(attempt.pods)))
        else:
            memory.useless.pop(key, None)
    memory.attempts = tuple(attempts)


def _are_unused(state: State, attempt: Attempt) -> bool:
    """Return whether nodes have come for the attempt, and none of them holds more than its node's own pods."""
    new = [
        name
        for name, node in state.nodes.items()
        if state.group_of(name) == attempt.group
        and (created := instant_of(node.metadata.creation_timestamp)) is not None
        and created >= attempt.time
    ]
    return bool(new) and all(
        is_daemon_set_pod(pod) or is_mirror_pod(pod) for name in new for pod in state.snapshot.pods_on(name)
    )
