"""The scale-down step: which nodes are unneeded, and which of them are removed now.

    decide: restore times -> evaluate candidates -> note since when -> cooldown? -> choose -> taint
    absorb: tainted nodes are deletions in flight from here on (``actuation``); failures are taken back

Both change ``state.memory.scale_down``, and ``memory.rotation``, which all searches for free capacity share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import is_not

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.consolidation.keeping import keep_back, note_uses
from kubetide.nodes.consolidation.spares import keep_spares
from kubetide.nodes.decision import AddTaint, Commands, EventRecord, Outcomes, Result
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.deletion import events
from kubetide.nodes.scale_down.deletion.actuation import CALL_LOST
from kubetide.nodes.scale_down.deletion.advice import advise, review_advice
from kubetide.nodes.scale_down.deletion.deletions import NOT_MARKED, next_wake, note_failure
from kubetide.nodes.scale_down.deletion.taint_delay import delay_after_taint
from kubetide.nodes.scale_down.fill_order import fill_order
from kubetide.nodes.scale_down.memory import Deletion, Remembered, ScaleDownStatus, UnremovableNode
from kubetide.nodes.scale_down.names import NO_SCHEDULE
from kubetide.nodes.scale_down.plan import NO_FAMILIES, Plan, choose, within_budgets
from kubetide.nodes.scale_down.soft_taints import restore, soft_taints, unix_seconds
from kubetide.nodes.scale_down.status import NOT_TRIED, pods_to_evict, status_of
from kubetide.nodes.scale_down.unneeded.eligibility import any_leaving, cluster_delays
from kubetide.nodes.scale_down.unneeded.evaluate import Evaluation, Removable
from kubetide.nodes.scale_down.unneeded.simulation_time import cut_reasons, evaluate_in_time, is_evaluating
from kubetide.nodes.state import State
from kubetide.ports.cloud import instance_id
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    between,
    format_duration,
    format_rfc3339,
    whole_seconds,
)


def decide(
    state: State, now: Instant, *, wait: str = "", families: Mapping[str, str] = NO_FAMILIES
) -> Commands:
    """Return the taints to change: soft taints, or those that begin deletions; or the next step of an evaluation.

    Args:
        state: Read, but for the memory of scale-down. The snapshot may hold this tick's placements.
        now: The time of the tick.
        families: Group -> its family of similar groups, of which the larger gives nodes back first.
        wait: Why nothing may be deleted in this tick, as the scale-up step found (pods too new ...).
    """
    memory = state.memory.scale_down
    if not state.settings.scale_down_enabled:
        memory.status = ScaleDownStatus(why="--scale-down-enabled is off")
        return Commands(
            result=NOT_TRIED,
            wake_at=next_wake(memory.deletions),
            reasons=(reason("ScaleDownDisabled"),),
        )
    if not is_evaluating(state):
        restore(state, now)
        review_advice(state, now)
        note_interval(state, now)
        state.phases.begin("findUnneeded")
    found = evaluate_in_time(state, now)
    if found is None:
        return Commands(next_step="simulate")
    before = memory.status
    _note_unneeded(state, found, now)
    note_uses(state, now)
    state.phases.end("findUnneeded")
    results, memory.results = memory.results, {}
    held = "; ".join(state.holds) or wait or _cooldown(state, now)
    if held or not (found.candidates or any_leaving(state, now)):
        result = "ScaleDownInCooldown" if held else "ScaleDownNoCandidates"
        plan = Plan()
    else:
        state.phases.begin("scaleDown")
        plan = choose(state, found.removable, now, families)
        keep_back(state, plan, now)
        keep_spares(state, plan, now)
        # The last step: a node that is kept must not use up the place of another one that may go.
        plan = within_budgets(state, plan, now)
        result = "ScaleDownNodeDeleteStarted" if plan.empty or plan.drain else "ScaleDownNoNodeDeleted"
    if state.tick is not None:
        state.tick.not_simulated = found.not_simulated
        state.tick.over_limits += [("down", resources) for resources in plan.over_limits]
    memory.status = status_of(state, found, plan, result, held or plan.limit, results)
    begun = begin_deletions(state, plan, now)
    soft = soft_taints(state, memory.unneeded, now)
    steering = fill_order(state, now, state.settings.max_bulk_soft_taint_count - len(soft))
    return Commands(
        actions=(*begun, *soft, *steering),
        wake_at=next_wake(memory.deletions),
        result=result,
        reasons=(*cut_reasons(state, found), *_reasons(state, before, memory.status, plan, held, now)),
    )


def absorb(state: State, commands: Commands, outcomes: Outcomes, now: Instant) -> Result:
    """Apply the outcomes of taints; the deletions of tainted nodes begin. Return the result.

    When the taint of one empty node fails, all empty ones of this tick are given back and none is
    drained; likewise among those to be drained. Source: upstream's taintNodesSync.
    """
    state.phases.end("scaleDown")
    memory = state.memory.scale_down
    emitted: list[EventRecord] = []
    failed_kinds: dict[bool, str] = {}
    tainted: list[Deletion] = []
    reasons: list[Reason] = []
    advised = False
    for action, outcome in zip(commands.actions, outcomes.results, strict=True):
        if not isinstance(action, AddTaint) or action.key != TO_BE_DELETED:
            continue
        deletion = memory.deletions[action.node]
        if outcome.status == "ok":
            tainted.append(deletion)
            continue
        if outcome.status == "withheld":
            reasons.append(advise(state, deletion, now))
            advised = True
            if state.settings.advises:
                continue
        del memory.deletions[action.node]
        if outcome.status == "failed":
            failed_kinds.setdefault(deletion.drain, outcome.error)
            emitted.append(events.marking_failed(action.node, outcome.error))
            note_failure(state, action.node, NOT_MARKED, outcome.error, now)
            reasons.append(
                reason(
                    "DeletionFailed",
                    action.node,
                    group=deletion.group,
                    why=NOT_MARKED,
                    error=outcome.error,
                )
            )
    empty_failed = False in failed_kinds
    delay = delay_after_taint(state, outcomes.taint_latency, now)
    begun: list[str] = []
    for deletion in tainted:
        if deletion.drain in failed_kinds or empty_failed:
            memory.deletions[deletion.node] = _changed(deletion, phase="untainting", due=now)
            continue
        memory.deletions[deletion.node] = _changed(deletion, phase="waiting", due=after(now, delay))
        emitted.extend(events.started(deletion, state.settings))
        begun.append(deletion.node)
    if advised and not tainted:
        memory.status = _with_result(memory.status, NOT_TRIED)
    if failed_kinds:
        # As upstream: one delay holds, the one after a failure, also where some deletions have begun.
        memory.last_failure = now
        memory.status = _with_result(memory.status, "ScaleDownError", begun)
    elif begun:
        memory.last_delete = now
    return Result(events=tuple(emitted), wake_at=next_wake(memory.deletions), reasons=tuple(reasons))


def forget_unneeded(state: State) -> None:
    """Forget since when nodes have been unneeded, also what soft taints say of it: called when the cluster is unhealthy."""
    state.memory.scale_down.unneeded = {}
    state.memory.scale_down.restored = True


def _changed(deletion: Deletion, *, phase: str, due: Instant) -> Deletion:
    return replace(deletion, phase=phase, due=due)


def _with_result(status: ScaleDownStatus, result: str, begun: Sequence[str] = ()) -> ScaleDownStatus:
    scaled_down = tuple(one for one in status.scaled_down if one.node in begun)
    return replace(status, result=result, scaled_down=scaled_down)


def note_interval(state: State, now: Instant) -> None:
    """Note the shortest time between two evaluations; it starts at the unneeded time."""
    memory = state.memory.scale_down
    shortest = memory.shortest_interval
    if shortest is None:
        shortest = max(Duration(1), state.settings.scale_down_unneeded_time)
    if memory.last_update is not None:
        shortest = max(Duration(1), min(shortest, Duration(now - memory.last_update)))
    memory.shortest_interval = shortest
    memory.last_update = now


def _note_unneeded(state: State, found: Evaluation, now: Instant) -> None:
    memory = state.memory.scale_down
    names = sorted(one.node for one in found.removable)
    memory.unneeded = {name: memory.unneeded.get(name, now) for name in names}
    memory.last_found = tuple(names)
    until = after(now, state.settings.unremovable_node_recheck_timeout)
    # A node that is still starting is not in the snapshot, and what was said of it before is out of date.
    remembered = {
        name: held for name, held in memory.unremovable.items() if held.until > now and name in state.snapshot
    }
    for name in found.failed:
        remembered[name] = Remembered(until, found.unremovable[name])
    memory.unremovable = dict(sorted(remembered.items()))
    memory.hints = found.hints
    memory.failures = {name: failed for name, failed in memory.failures.items() if name in state.nodes}
    state.memory.rotation = found.rotation


def _cooldown(state: State, now: Instant) -> str:
    """Say which delay of the whole cluster still runs; empty when none does."""
    for delay in cluster_delays(state):
        # At exactly the delay it is over. Source: upstream compares with "after now".
        if delay.ends > now:
            at = f"was at {format_rfc3339(delay.since)}" if delay.known else "was before the start"
            until, length = format_rfc3339(delay.ends), format_duration(delay.length)
            return f"the last {delay.what} {at}, nothing goes before {until} ({length})"
    return ""


def begin_deletions(state: State, plan: Plan, now: Instant) -> tuple[AddTaint, ...]:
    """Register the deletions and return their taints, empty nodes first."""
    memory, settings = state.memory.scale_down, state.settings
    actions: list[AddTaint] = []
    for one in (*plan.empty, *plan.drain):
        spec = state.nodes[one.node].spec
        cordon = settings.cordon_node_before_terminating
        memory.deletions[one.node] = Deletion(
            node=one.node,
            group=one.group,
            provider_id=instance_id(state.nodes[one.node]),
            cordoned=cordon and not spec.unschedulable,
            drain=bool(one.moves.pods),
            phase="marking",
            since=now,
            due=after(now, CALL_LOST),
            utilization=str(one.utilization),
            reschedule=tuple(pod.metadata.name for pod in pods_to_evict(state, one)),
        )
        actions.append(
            AddTaint(
                one.node,
                TO_BE_DELETED,
                unix_seconds(now),
                NO_SCHEDULE,
                cordon=cordon,
            )
        )
    memory.deletions = dict(sorted(memory.deletions.items()))
    # From here on its taint is that of this deletion.
    state.memory.uncleaned = tuple(one for one in state.memory.uncleaned if one[0] not in memory.deletions)
    return tuple(actions)


def _reasons(
    state: State, before: ScaleDownStatus, status: ScaleDownStatus, plan: Plan, held: str, now: Instant
) -> tuple[Reason, ...]:
    """Say what has changed since the last evaluation, and what is begun."""
    found: list[Reason] = []
    if state.holds:
        found.append(reason("ScaleDownHeld", why=held))
    elif held:
        found.append(reason("ScaleDownInCooldown", why=held))
    found += [
        _unremovable_reason(one)
        for one, former in _other_verdicts(before.unremovable, status.unremovable)
        if one.reason not in (former, "RecentlyUnremovable")
    ]
    was_unneeded = dict.fromkeys(before.unneeded or ())
    found += [reason("NodeUnneeded", name) for name in status.unneeded or () if name not in was_unneeded]
    for one in plan.empty:
        found.append(_chosen(state, one, now, "EmptyNodeChosen"))
    for one in plan.drain:
        found.append(_chosen(state, one, now, "NodeChosen"))
    return tuple(found)


def _other_verdicts(
    before: Sequence[UnremovableNode], now: Sequence[UnremovableNode]
) -> list[tuple[UnremovableNode, str | None]]:
    """Return the verdicts that may differ from those before, each with the node's reason then; None for none."""
    if len(before) == len(now):
        # Most are the very objects of before.
        others = list(compress(zip(now, before, strict=True), map(is_not, now, before)))
        if all(one.node == former.node for one, former in others):
            return [(one, former.reason) for one, former in others]
    known = {one.node: one.reason for one in before}
    return [(one, known.get(one.node)) for one in now]


def _unremovable_reason(one: UnremovableNode) -> Reason:
    if one.blocking_pod:
        return reason(
            "NodeBlockedByPod",
            one.node,
            pod=one.blocking_pod,
            why=one.blocking_reason,
            detail=one.detail,
        )
    return reason("NodeStays", one.node, why=one.reason, detail=one.detail)


def _chosen(state: State, one: Removable, now: Instant, code: str) -> Reason:
    unneeded = whole_seconds(between(state.memory.scale_down.unneeded[one.node], now))
    return reason(
        code,
        one.node,
        group=one.group,
        pods=len(one.moves.pods),
        utilization=one.utilization.value,
        unneeded=format_duration(unneeded),
    )
