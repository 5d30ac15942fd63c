"""Outcomes of the calls of an ``actuate`` step."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import (
    Action,
    Commands,
    DeleteNodes,
    EventRecord,
    EvictPod,
    Outcome,
    Outcomes,
    RemoveTaint,
    Result,
)
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.deletion import events
from kubetide.nodes.scale_down.deletion.actuation import RETRY
from kubetide.nodes.scale_down.deletion.deletions import failure, goes_whole, next_wake
from kubetide.nodes.scale_down.deletion.evictions import settle_evictions
from kubetide.nodes.scale_down.memory import DeleteResult, Deletion
from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant, after, before, hours, minutes

_MAY_GO: Duration = minutes(5)
"""How long a node keeps its taint where nobody knows whether the cloud deletes its machine: by then most are gone."""


def absorb_actuation(state: State, commands: Commands, outcomes: Outcomes, now: Instant) -> Result:
    """Apply the outcomes of evictions, removed taints and deleted machines; return the result."""
    memory = state.memory.scale_down
    emitted: list[EventRecord] = []
    because: list[Reason] = []
    done = list(zip(commands.actions, outcomes.results, strict=True))
    # Evictions first: the same step may delete the machine of a node whose DaemonSet pods it evicts.
    accepted = _settle_evictions(state, done, now, emitted)
    for action, outcome in done:
        if isinstance(action, RemoveTaint) and outcome.status == "ok":
            memory.deletions.pop(action.node, None)
        elif isinstance(action, DeleteNodes):
            batch = [memory.deletions[name] for name in action.nodes if name in memory.deletions]
            # A group that goes as a whole is reported as its last node, which is one that was drained if any was.
            whole = goes_whole(state, action.group) and any(one.drain for one in batch)
            for one in batch:
                _settle_delete(
                    state, replace(one, drain=True) if whole else one, outcome, now, emitted, because
                )
    _count(state, now, evictions=accepted)
    return Result(events=tuple(emitted), wake_at=next_wake(memory.deletions), reasons=tuple(because))


def _settle_evictions(
    state: State, done: list[tuple[Action, Outcome]], now: Instant, emitted: list[EventRecord]
) -> int:
    memory = state.memory.scale_down
    evictions: dict[str, list[tuple[EvictPod, Outcome]]] = {}
    for action, outcome in done:
        if isinstance(action, EvictPod) and action.node in memory.deletions:
            evictions.setdefault(action.node, []).append((action, outcome))
    accepted = 0
    for name in sorted(evictions):
        settled, pod_events, gone = settle_evictions(memory.deletions[name], evictions[name], now, RETRY)
        memory.deletions[name] = _after_evictions(settled, now)
        emitted.extend(pod_events)
        accepted += gone
    return accepted


def _after_evictions(deletion: Deletion, now: Instant) -> Deletion:
    """Set when to look again: at once when all pods in turn have accepted, else at the next try."""
    if deletion.phase != "evicting":
        return deletion
    in_turn = (one for one in deletion.pods if one.stage == deletion.stage)
    waiting = [one.next_try for one in in_turn if not one.evicted]
    return replace(deletion, due=min(waiting, default=now))


def _settle_delete(
    state: State,
    deletion: Deletion,
    outcome: Outcome,
    now: Instant,
    emitted: list[EventRecord],
    because: list[Reason],
) -> None:
    memory = state.memory.scale_down
    if not outcome.tried:
        # A call that was put off, as the cloud is slow, is made in the next step.
        retry = now if outcome.status == "skipped" else after(now, RETRY)
        memory.deletions[deletion.node] = replace(deletion, phase="ready", until=retry, due=retry)
        return
    if outcome.status == "failed":
        error = f"failed to delete nodes from group {deletion.group}: {outcome.error}"
        event, why, given_back = failure(state, deletion, "NodeDeleteErrorFailedToDelete", error, now)
        if outcome.may_be_done:
            # Without the taint pods would come to a machine that is on its way out.
            given_back = replace(given_back, due=after(now, _MAY_GO))
        memory.deletions[deletion.node] = given_back
        # Only here: upstream's registry does not learn of a drain that failed.
        memory.last_failure_of[deletion.group] = now
        emitted.append(event)
        because.append(why)
        return
    del memory.deletions[deletion.node]
    memory.failures.pop(deletion.node, None)
    memory.results[deletion.node] = DeleteResult("NodeDeleteOk")
    memory.last_delete_of[deletion.group] = now
    _count(state, now, deletions=1)
    emitted.extend(events.removed(deletion, state.settings))
    because.append(reason("NodeDeleted", deletion.node, group=deletion.group))


def _count(state: State, now: Instant, *, deletions: int = 0, evictions: int = 0) -> None:
    """Note calls for the caps per hour, and drop what is older."""
    memory = state.memory.scale_down
    hour_ago = before(now, hours(1))
    if deletions:
        recent = tuple(entry for entry in memory.recent_deletions if entry[0] > hour_ago)
        memory.recent_deletions = (*recent, (now, deletions))
    if evictions:
        recent = tuple(entry for entry in memory.recent_evictions if entry[0] > hour_ago)
        memory.recent_evictions = (*recent, (now, evictions))
