"""Moves under way: whether the new node has joined, which pods must still move, and which nodes may be drained now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.consolidation.candidates import (
    end_soon,
    facts_of,
    split_ending,
    waits_for_budget,
)
from kubetide.nodes.consolidation.keeping import within_disruption_budgets
from kubetide.nodes.consolidation.limits import RemovalLimits
from kubetide.nodes.consolidation.memory import Move
from kubetide.nodes.facts.nodes import is_starting_after
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.failures import max_provision_time
from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.plan import Plan, within_budgets
from kubetide.nodes.scale_down.unneeded.evaluate import Removable
from kubetide.nodes.scale_down.unneeded.removal import DoesNotFit, Simulation
from kubetide.nodes.state import State
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant, after, format_rfc3339, minutes

PATIENCE: Duration = minutes(30)
"""How long a move waits for pods that end by themselves, or for free capacity, before it is given up."""


@dataclass(slots=True)
class Progress:
    """Actions for the moves: nodes to drain now, the nodes that take their pods, and nodes to close for new pods."""

    plan: Plan = field(default_factory=Plan)
    taking: dict[str, None] = field(default_factory=dict)
    close: list[str] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


def advance(state: State, now: Instant) -> Progress:
    """Advance all moves as far as the budgets allow, and drop those that are done or given up. Changes their memory."""
    memory = state.memory.consolidation
    found = Progress()
    going: list[Move] = []
    # What goes in this tick keeps its new places, so that the next move does not count on them.
    state.snapshot.fork()
    try:
        for move in memory.moves:
            left = _still_there(state, move)
            if not left.nodes:
                continue
            moved = _step(state, left, found, now)
            if isinstance(moved, Move):
                going.append(moved)
            else:
                _give_up(state, left, moved, found, now)
    finally:
        state.snapshot.revert()
    within_disruption_budgets(state, found.plan, now)
    found.plan = within_budgets(state, found.plan, now)
    begun = {one.node for one in (*found.plan.empty, *found.plan.drain)}
    # A deletion that fails is begun again by another move, after a pause.
    rest = [_without(move, begun) for move in going]
    memory.moves = tuple(move for move in rest if move.nodes)
    for one in (*found.plan.empty, *found.plan.drain):
        memory.removed_at[one.group] = now
    return found


def _still_there(state: State, move: Move) -> Move:
    gone = {name for name in move.nodes if name not in state.nodes}
    return _without(move, gone | state.memory.scale_down.deletions.keys())


def _without(move: Move, gone: Collection[str]) -> Move:
    nodes = tuple(name for name in move.nodes if name not in gone)
    return move if nodes == move.nodes else replace(move, nodes=nodes)


def _step(state: State, move: Move, found: Progress, now: Instant) -> Move | str:
    """Return the move as it goes on, or why it is given up."""
    memory = state.memory.consolidation
    if move.buy and not move.arrived:
        if not _has_arrived(state, move):
            group = state.groups.get(move.buy)
            limit = PATIENCE if group is None else max_provision_time(group, state.settings)
            if after(move.since, limit) < now:
                return f"no new node of group {move.buy} came"
            _note(state, move, f"waits for a new node of group {move.buy}")
            return move
        move = replace(move, arrived=True, since=now)
    removable: list[Removable] = []
    context = drain_context(state, now, state.scale_down_cache.allowances(state.pdbs))
    waiting = 0
    closing: list[tuple[str, tuple[Pod, ...]]] = []
    for name in move.nodes:
        group = state.groups.get(state.group_of(name) or "")
        split = None
        if group is not None and name in state.snapshot:
            facts = facts_of(state, name, group, context)
            split = split_ending(state, facts, context)
            is_patient = after(move.since, PATIENCE) >= now
            if split is None and is_patient and waits_for_budget(state, facts, context):
                _note(state, move, "waits: a PodDisruptionBudget allows no eviction now")
                return move
        if group is None or split is None or facts.utilization is None:
            return f"a pod on node {name} keeps it now"
        moves, ending = split
        if not end_soon(facts.node, ending, now):
            return f"pods on node {name} that may not be evicted do not end"
        waiting += len(ending)
        if name not in memory.closing:
            closing += [(name, ending)] if ending else []
        removable.append(Removable(name, group.id, moves, False, facts.utilization))
    # A new node is paid for: pods that came to the old one meanwhile are evicted in turn.
    refused = _refused(state, removable, dict(closing), found, now, commit=not waiting, in_turn=move.arrived)
    if waiting and not refused:
        found.close += [name for name, _ in closing]
        _note(state, move, f"waits for {waiting} pods that end by themselves; no new ones come")
        if after(move.since, PATIENCE) < now:
            return f"{waiting} pods have not ended"
        return move
    if refused:
        _note(state, move, f"waits: {refused}")
        if after(move.since, PATIENCE) < now:
            return refused
        return move
    _note(state, move, "goes")
    found.plan.drain += [one for one in removable if one.moves.pods]
    found.plan.empty += [one for one in removable if not one.moves.pods]
    return move


def _has_arrived(state: State, move: Move) -> bool:
    """Return whether a node of the group that is younger than the move is ready."""
    return any(
        is_starting_after(node, move.since) and not state.health(name).unready
        for name, node in state.nodes.items()
        if state.group_of(name) == move.buy
    )


def _refused(
    state: State,
    removable: list[Removable],
    closing: Mapping[str, tuple[Pod, ...]],
    going: Progress,
    now: Instant,
    *,
    commit: bool,
    in_turn: bool,
) -> str:
    """Return why the nodes cannot all go now; empty where their pods fit elsewhere and all limits allow it.

    Args:
        state: Its snapshot has the pods of the nodes in ``going`` in their new places.
        removable: The nodes of the move.
        closing: Of nodes that are about to take no new pods, those that end by themselves: others like them come.
        going: What earlier moves do in this tick.
        now: The time.
        commit: Whether the snapshot and ``going.taking`` keep the new places if nothing refuses them.
        in_turn: Whether budgets may allow the evictions one after another.
    """
    memory = state.memory.scale_down
    limits = RemovalLimits(state, now)
    for one in (*going.plan.empty, *going.plan.drain):
        limits.take(one.node, one.moves.pods)
    state.snapshot.fork()
    refused = ""
    try:
        simulation = Simulation(
            state.snapshot, list(state.nodes), memory.hints, state.memory.rotation, state.memory.new_pods
        )
        # Nodes that are to go themselves are no place for others' pods, as in the search.
        moved = [name for move in state.memory.consolidation.moves for name in move.nodes]
        for name in (*memory.deletions, *state.memory.consolidation.closing, *moved):
            simulation.close(name)
        for one in removable:
            refused = limits.refusal(one.node, one.moves.pods, in_turn=in_turn)
            if refused:
                break
            limits.take(one.node, one.moves.pods)
            simulation.move(one.node, (*one.moves.pods, *closing.get(one.node, ())))
            simulation.remove(one.node)
        if commit and not refused:
            going.taking.update(dict.fromkeys(simulation.hints.values()))
    except DoesNotFit as error:
        refused = error.detail
    finally:
        if refused or not commit:
            state.snapshot.revert()
        else:
            state.snapshot.commit()
    return refused


def _give_up(state: State, move: Move, why: str, found: Progress, now: Instant) -> None:
    memory = state.memory.consolidation
    for name in move.nodes:
        until = format_rfc3339(memory.give_up(name, now))
        memory.reasons[name] = f"it is left alone until {until}, as a move was given up: {why}"
        found.reasons.append(reason("ConsolidationGivenUp", name, why=why))


def _note(state: State, move: Move, what: str) -> None:
    for name in move.nodes:
        state.memory.consolidation.reasons[name] = f"{reason_of(move)}; it {what}"


def reason_of(move: Move) -> str:
    """Return a description of a move, for explanations."""
    others = f", together with {len(move.nodes) - 1} more" if len(move.nodes) > 1 else ""
    way = f"a node of group {move.buy} replaces it{others}" if move.buy else "its pods fit on other nodes"
    return f"{way}: saves {move.saving:.4g} an hour for {move.evictions} {'eviction' if move.evictions == 1 else 'evictions'}"
