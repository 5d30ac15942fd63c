"""The consolidation step: advances the moves under way, and looks for new ones.

    decide: note what was undone -> advance moves -> taints, deletions -> idle nodes and new moves (once a minute) -> increases
    absorb: deletions run as those of scale-down do; a new node is waited for; what failed is given up

Every rule of scale-down holds: what it would not remove is not removed here, and a node's deletion is carried out
by the same machinery. Source of the user's terms: Karpenter 1.15, consolidation and disruption budgets.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.consolidation.expected_pods import note_gone
from kubetide.nodes.consolidation.idle import idle_nodes, idle_reasons
from kubetide.nodes.consolidation.keeping import left_of_budget
from kubetide.nodes.consolidation.memory import AGAIN, LONGEST_PAUSE, MOST_TIMES, Move, undone_again
from kubetide.nodes.consolidation.progress import advance, reason_of
from kubetide.nodes.consolidation.search import find_moves
from kubetide.nodes.decision import (
    Action,
    AddTaint,
    Commands,
    EventRecord,
    IncreaseSize,
    Outcome,
    Outcomes,
    RemoveTaint,
    Result,
)
from kubetide.nodes.facts.nodes import CONSOLIDATION
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import backoff_after_refusal
from kubetide.nodes.registry.cluster_state import recalculate
from kubetide.nodes.registry.failures import note_request
from kubetide.nodes.registry.stock_outs import note_shortage
from kubetide.nodes.scale_down.decide import absorb as absorb_scale_down
from kubetide.nodes.scale_down.decide import begin_deletions
from kubetide.nodes.scale_down.deletion import events
from kubetide.nodes.scale_down.deletion.deletions import next_wake
from kubetide.nodes.scale_down.names import NO_SCHEDULE
from kubetide.nodes.scale_down.soft_taints import unix_seconds
from kubetide.nodes.scale_up.increase.increases import command
from kubetide.nodes.scale_up.tick import Increase, Tick
from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant, after, before, minutes

SEARCH_INTERVAL: Duration = minutes(1)
_MOST_MOVES = 10
"""Most nodes whose moves begin in one search."""


def decide(state: State, tick: Tick, now: Instant) -> Commands:
    """Return the taints and increases of this tick's moves."""
    memory = state.memory.consolidation
    _forget(state, now)
    note_gone(state, now)
    _note_undone(state, tick, now)
    budget = left_of_budget(state, "Underutilized", now)
    held = _held(state, now)
    actions: list[Action] = []
    reasons: list[Reason] = []
    emitted: list[EventRecord] = []
    taking: dict[str, None] = {}
    if not held:
        progress = advance(state, now)
        taking = progress.taking
        actions += begin_deletions(state, progress.plan, now)
        actions += [AddTaint(name, CONSOLIDATION, unix_seconds(now), NO_SCHEDULE) for name in progress.close]
        memory.closing.update(dict.fromkeys(progress.close, now))
        reasons += progress.reasons
        for one in (*progress.plan.empty, *progress.plan.drain):
            reasons.append(reason("ConsolidationBegun", one.node, group=one.group, pods=len(one.moves.pods)))
            emitted.append(_event(one.node, "DisruptionTerminating", "Disrupting Node: Underutilized"))
    actions += _reopened(state)
    if not held and _may_search(state, tick, now):
        memory.next_search = after(now, SEARCH_INTERVAL)
        idle = idle_nodes(state, tick, now, taking)
        actions += begin_deletions(state, idle, now)
        reasons += idle_reasons(state, idle, now)
        emitted += [_event(one.node, "DisruptionTerminating", "Disrupting Node: Empty") for one in idle.empty]
        there = sum(len(move.nodes) for move in memory.moves)
        most = 0 if budget == 0 else _MOST_MOVES - there
        moves = find_moves(state, tick, now, most).moves
        memory.moves = (*memory.moves, *moves)
        for move in moves:
            if move.buy:
                group = state.groups[move.buy]
                actions.append(command(state, Increase(group, group.target_size + 1), "pods"))
            for name in move.nodes:
                memory.reasons[name] = reason_of(move)
                reasons.append(
                    reason(
                        "ConsolidationChosen",
                        name,
                        why=reason_of(move),
                        saving=f"{move.saving:.4f}",
                        evictions=move.evictions,
                    )
                )
                emitted.append(
                    _event(name, "DisruptionLaunching", f"Disrupting Node: Underutilized, {reason_of(move)}")
                )
    return Commands(
        actions=tuple(_one_a_group(actions)),
        events=tuple(emitted),
        wake_at=next_wake(state.memory.scale_down.deletions),
        reasons=tuple(reasons),
    )


def absorb(state: State, commands: Commands, outcomes: Outcomes, now: Instant) -> Result:
    """Apply the outcomes of taints and increases; return the result."""
    status = state.memory.scale_down.status
    found = absorb_scale_down(state, commands, outcomes, now)
    state.memory.scale_down.status = status
    reasons = list(found.reasons)
    for action, outcome in zip(commands.actions, outcomes.results, strict=True):
        if isinstance(action, IncreaseSize):
            reasons += _absorb_increase(state, action, outcome, now)
        elif isinstance(action, AddTaint | RemoveTaint) and action.key == CONSOLIDATION:
            _absorb_taint(state, action, outcome)
    if state.view is not None:
        recalculate(state, state.view)
    return replace(found, reasons=tuple(reasons))


def _held(state: State, now: Instant) -> str:
    """Say why nothing may go; empty where nothing holds. An increase elsewhere does not hold it, unlike scale-down."""
    if state.holds:
        return "; ".join(state.holds)
    settings, memory = state.settings, state.memory.scale_down
    failure = memory.last_failure
    if failure is not None and after(failure, settings.scale_down_delay_after_failure) > now:
        return "the last failure is too recent"
    return ""


def _may_search(state: State, tick: Tick, now: Instant) -> bool:
    """Return whether new moves are looked for: nothing is bought or will be at once, and the last search was a while ago.

    Pods that get no node now hold nothing up, whatever the reason: there may be such pods for ever.
    """
    due = state.memory.consolidation.next_search
    if due is not None and now < due:
        return False
    return not tick.increases and tick.result != "ScaleUpInCooldown"


def _forget(state: State, now: Instant) -> None:
    memory = state.memory.consolidation
    memory.failed = {
        name: until
        for name, until in memory.failed.items()
        if name in state.nodes and after(until, LONGEST_PAUSE) > now
    }
    memory.given_up = {name: times for name, times in memory.given_up.items() if name in memory.failed}
    memory.tried = tuple(name for name in memory.tried if name in state.nodes)
    memory.closing = {name: since for name, since in memory.closing.items() if name in state.nodes}
    there = {name for move in memory.moves for name in move.nodes} | set(state.memory.scale_down.unneeded)
    there |= {name for name, until in memory.failed.items() if until > now}
    memory.reasons = {
        name: text for name, text in memory.reasons.items() if name in there and name in state.nodes
    }
    soon = state.settings.buy_back_price
    oldest = before(now, soon)
    memory.removed_at = {group: at for group, at in memory.removed_at.items() if at > oldest}
    longest = Duration(soon << MOST_TIMES)
    memory.undone = {group: one for group, one in memory.undone.items() if after(one.until, longest) > now}


def _note_undone(state: State, tick: Tick, now: Instant) -> None:
    """Leave groups alone, each time for twice as long, whose nodes are bought again soon after their removal."""
    memory = state.memory.consolidation
    for one in tick.increases if tick.result == "ScaleUpSuccessful" else ():
        if one.group.id in memory.removed_at:
            before_this = memory.undone.get(one.group.id)
            memory.undone[one.group.id] = undone_again(before_this, state.settings.buy_back_price, now)
            del memory.removed_at[one.group.id]


def _reopened(state: State) -> list[RemoveTaint]:
    """Return the taints to be taken off nodes that are in no move any more."""
    memory = state.memory.consolidation
    there = {name for move in memory.moves for name in move.nodes}
    deletions = state.memory.scale_down.deletions
    return [
        RemoveTaint(name, CONSOLIDATION)
        for name in memory.closing
        if name not in there and name not in deletions
    ]


def _one_a_group(actions: list[Action]) -> list[Action]:
    """Add up the increases of each group, behind all else."""
    found: dict[str, IncreaseSize] = {}
    others: list[Action] = []
    for action in actions:
        if not isinstance(action, IncreaseSize):
            others.append(action)
        elif action.group in found:
            found[action.group] = replace(found[action.group], delta=found[action.group].delta + action.delta)
        else:
            found[action.group] = action
    return [*others, *found.values()]


def _absorb_taint(state: State, action: AddTaint | RemoveTaint, outcome: Outcome) -> None:
    """Note that a node is not closed: its taint has come off, or was never put on."""
    if (outcome.status == "ok") == isinstance(action, RemoveTaint):
        state.memory.consolidation.closing.pop(action.node, None)


def _absorb_increase(state: State, action: IncreaseSize, outcome: Outcome, now: Instant) -> list[Reason]:
    memory, group = state.memory, state.groups[action.group]
    if outcome.status == "ok":
        note_request(state, group, action.delta, now)
        memory.increases = (*memory.increases, (now, action.delta))
        state.set_target(group.id, action.size + action.delta)
        return [reason("Increased", action.group, size=action.size, to=action.size + action.delta)]
    found: list[Reason] = []
    if outcome.status == "failed":
        error = f"failed to increase node group size: {outcome.error}"
        memory.backoff[group.id] = backoff_after_refusal(
            memory.backoff.get(group.id), now, state.settings, outcome, message=error
        )
        memory.last_failure_of[group.id] = now
        found += note_shortage(state, group.id, outcome.cause, now)
        found.append(reason("IncreaseRefused", group.id, delta=action.delta, error=outcome.error))
    elif outcome.status == "withheld":
        size = action.size
        found.append(reason("IncreaseAdvised", group.id, size=size, to=size + action.delta))
    found += _withdraw(state, group.id, outcome.error if outcome.status == "failed" else None, now)
    return found


def _withdraw(state: State, group: str, refused: str | None, now: Instant) -> list[Reason]:
    """Give up the moves that wait for a new node which does not come.

    Where the cloud has refused it the group is backed off, and another may be found for the same nodes at once.
    """
    memory = state.memory.consolidation
    gone: list[Move] = [move for move in memory.moves if move.buy == group and move.since == now]
    memory.moves = tuple(move for move in memory.moves if move not in gone)
    found = []
    for move in gone:
        for name in move.nodes:
            if refused is None:
                memory.failed[name] = after(now, AGAIN)
            memory.reasons.pop(name, None)
            found.append(reason("ConsolidationGivenUp", name, why=f"group {group} was not increased"))
    return found


def _event(node: str, word: str, message: str) -> EventRecord:
    return events.on_node(node, message, reason=word)
