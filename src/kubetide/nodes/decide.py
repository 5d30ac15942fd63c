"""The steps of the node loop: what is decided, in which order.

One tick::

    update      cluster state: overdue requests, failed and unregistered machines, wrong sizes
    scale_up    nodes on their way -> what already fits -> options of each group -> expander
                -> limits, balance -> increases
    pack        options of the next groups, where there are many
    place       what already fits, the next part of the pods, where time for it is limited
    salvo       the same for what is left, on the nodes just bought, where several increases a tick are allowed
    scale_down  unneeded nodes -> soft taints -> which to delete -> taints
    simulate    the next removals, where there are many
    consolidate nodes that a cheaper one replaces -> increases, taints; where that is enabled
    min_size    groups below their minimum
    remove_groups  empty groups that the loop has created; where it may create groups

and between ticks, while deletions are in flight, ``actuate``: wait, look again, evict, delete.

``decide`` and ``absorb`` advance ``state.memory``; else they depend on nothing but the state and the
time: from the same record they give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.autoprovisioning.creation import absorb_creations
from kubetide.nodes.capacity.autoprovisioning.removal import absorb_removal, plan_removal
from kubetide.nodes.capacity.provisioning.serve import expire, writes_of
from kubetide.nodes.decision import (
    AskExpander,
    Commands,
    CreateGroup,
    EventRecord,
    IncreaseSize,
    Outcomes,
    Result,
)
from kubetide.nodes.facts.new_pods import counts_new_pods, with_new_pods
from kubetide.nodes.registry.cluster_state import observe, recalculate
from kubetide.nodes.registry.notices import notices
from kubetide.nodes.registry.quiet import is_quiet, note_quiet, quiet_tick
from kubetide.nodes.registry.status_map import (
    initializing_status,
    is_status_due,
    note_candidates,
    update_status,
)
from kubetide.nodes.registry.update import absorb_update, not_begun, plan_update, plan_without_nodes
from kubetide.nodes.registry.view import ClusterView
from kubetide.nodes.scale_down.decide import absorb as absorb_scale_down
from kubetide.nodes.scale_down.decide import decide as decide_scale_down
from kubetide.nodes.scale_down.deletion.absorb_actuation import absorb_actuation
from kubetide.nodes.scale_down.deletion.actuation import actuate
from kubetide.nodes.scale_down.status import begin_status, report_results
from kubetide.nodes.scale_up.absorb import absorb_scale_up
from kubetide.nodes.scale_up.choosing.packing_time import plan_packing
from kubetide.nodes.scale_up.increase.balancing import families
from kubetide.nodes.scale_up.increase.minimum import plan_min_size
from kubetide.nodes.scale_up.orchestrator import (
    absorb_answer,
    after_consolidation,
    after_min_size,
    after_scale_down,
    open_tick,
    place_on,
    plan_choice,
    plan_scale_up,
)
from kubetide.nodes.scale_up.pending.degradation import note_degradation, part_of
from kubetide.nodes.scale_up.reporting.answers import board_answers
from kubetide.nodes.scale_up.salvo import plan_salvo
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.nodes.templates.keeping import document_due
from kubetide.nodes.templates.learning import learn
from kubetide.units.time import Instant


def decide(state: State, now: Instant) -> Commands:
    """Return the commands of the state's step."""
    match state.step:
        case "update":
            return _begin(state, now)
        case "scale_up":
            assert state.view is not None, "the update step comes first"
            # Scale-up may be decided again in the same tick.
            again = state.tick is not None
            state.end_tick()
            return _scale_up(state, state.view, now, again=again)
        case "place":
            assert state.tick is not None, "scale-up opens the tick"
            place_on(state, state.tick, now, most=part_of(state))
            return _placed(state, state.tick, now)
        case "pack":
            assert state.tick is not None, "scale-up opens the tick"
            return plan_packing(state, state.tick, now)
        case "choose":
            assert state.tick is not None, "scale-up opens the tick"
            return plan_choice(state, state.tick, now)
        case "salvo":
            assert state.tick is not None, "scale-up opens the tick"
            return plan_salvo(state, state.tick, now)
        case "scale_down" | "simulate":
            too_new = state.tick is not None and state.tick.new_until is not None
            wait = "pods without a place are too new" if too_new else ""
            found = decide_scale_down(state, now, wait=wait, families=_families(state))
            if found.next_step:
                return found
            note_candidates(state)
            return replace(found, next_step=after_scale_down(state))
        case "consolidate":
            from kubetide.nodes.consolidation.decide import decide as consolidate  # noqa: PLC0415  answers without it come sooner

            assert state.tick is not None, "scale-up opens the tick"
            return replace(consolidate(state, state.tick, now), next_step=after_consolidation(state))
        case "min_size":
            assert state.tick is not None, "scale-up opens the tick"
            return replace(plan_min_size(state, state.tick, now), next_step=after_min_size(state))
        case "remove_groups":
            return plan_removal(state, now)
        case "actuate":
            return actuate(state, now)


def absorb(state: State, commands: Commands, outcomes: Outcomes, now: Instant) -> Result:
    """Apply the outcomes of the commands; return the result, with the status document at the end of a tick."""
    match state.step:
        case "update" if state.tick is None:
            # A loop that has no node to begin with ends before upstream looks at results of deletions and at requests.
            begun = not not_begun(state)
            if begun and not commands.next_step:
                report_results(state)
            events, reasons = absorb_update(state, commands.actions, outcomes.results)
            writes = expire(state, now) if begun else ()
            result = Result(events=tuple(events), reasons=tuple(reasons), writes=writes)
        case "update" | "scale_up" | "place" | "pack" | "salvo" if commands.next_step in {"place", "pack"}:
            return Result()
        case "update" | "scale_up" | "place" | "pack" | "choose" | "salvo" | "min_size":
            assert state.tick is not None, "scale-up opens the tick"
            if isinstance(asked := next(iter(commands.actions), None), AskExpander):
                return Result(reasons=tuple(absorb_answer(state.tick, asked, outcomes.results[0])))
            events, reasons = _absorb_calls(state, state.tick, commands, outcomes, now)
            requests = state.tick.requests
            writes = (*state.tick.writes, *(() if requests is None else writes_of(state, requests)))
            state.tick.writes = ()
            replan = state.tick.replan
            result = Result(events=tuple(events), reasons=tuple(reasons), writes=writes, replan=replan)
            if replan:
                return result
            if not commands.next_step:
                report_results(state)
        case "scale_down" | "simulate" if commands.next_step == "simulate":
            return Result()
        case "scale_down" | "simulate":
            result = absorb_scale_down(state, commands, outcomes, now)
            if (
                state.memory.scale_down.status.result == "ScaleDownNodeDeleteStarted"
                and state.view is not None
            ):
                # Upstream's registry looks at the sizes again when a deletion begins.
                recalculate(state, state.view)
        case "consolidate":
            from kubetide.nodes.consolidation.decide import absorb as absorb_consolidation  # noqa: PLC0415  as above

            result = absorb_consolidation(state, commands, outcomes, now)
        case "remove_groups":
            result = absorb_removal(state, commands.actions, outcomes.results, now)
        case "actuate":
            return absorb_actuation(state, commands, outcomes, now)
    return result if commands.next_step else with_documents(state, result, now)


def with_documents(state: State, result: Result, now: Instant) -> Result:
    """Return the result of a tick's last step with the documents that are due."""
    if not state.settings.write_status_configmap:
        return result
    assert state.view is not None, "every tick begins with a view"
    return replace(result, status=_status(state, state.view, now), learned=document_due(state, now))


def _absorb_calls(
    state: State, tick: Tick, commands: Commands, outcomes: Outcomes, now: Instant
) -> tuple[list[EventRecord], list[Reason]]:
    """Take in which groups were created, and then what came of the increases."""
    creations = tuple(action for action in commands.actions if isinstance(action, CreateGroup))
    increases = tuple(action for action in commands.actions if isinstance(action, IncreaseSize))
    # Groups are created first.
    of_creations, of_increases = outcomes.results[: len(creations)], outcomes.results[len(creations) :]
    events, reasons = absorb_creations(state, tick, creations, of_creations, now)
    more, why = absorb_scale_up(state, tick, increases, of_increases, now)
    return [*events, *more], [*reasons, *why]


def _begin(state: State, now: Instant) -> Commands:
    memory = state.memory
    memory.started = now if memory.started is None else memory.started
    begin_status(state)
    if message := not_begun(state):
        state.phases.end("updateClusterState")
        return plan_without_nodes(state, message, now)
    if counts_new_pods(state.settings):
        memory.new_pods = with_new_pods(memory.new_pods, state.announced_new_pods, state.pending, now)
    if is_quiet(state, now):
        assert state.view is not None, "a quiet state has been looked at"
        memory.templates_at = now
        state.phases.end("updateClusterState")
        return replace(plan_scale_up(state, quiet_tick(state, state.view), now), answers=())
    view = state.view = observe(state, now)
    learned = learn(state, now)
    state.phases.end("updateClusterState")
    commands = plan_update(state, view, now)
    if commands is None:
        commands = _scale_up(state, view, now)
    note_quiet(state, view, commands, now)
    events, noticed = notices(state)
    return replace(
        commands,
        events=(*events, *commands.events),
        reasons=(*learned, *noticed, *commands.reasons),
    )


def _families(state: State) -> Mapping[str, str]:
    """Return which groups stand in for one another on the way down; none where zones are not balanced then."""
    if not state.settings.balance_scale_down:
        return {}
    return families(all_templates(state), state.settings)


def _status(state: State, view: ClusterView, now: Instant) -> str | None:
    if message := not_begun(state):
        return initializing_status(message, now)
    if view.rendered is not None and is_quiet(state, now) and not is_status_due(state, now):
        return None
    return update_status(state, view, now)


def _scale_up(state: State, view: ClusterView, now: Instant, *, again: bool = False) -> Commands:
    return _placed(state, open_tick(state, view, now, most=part_of(state), again=again), now)


def _placed(state: State, tick: Tick, now: Instant) -> Commands:
    if tick.demand.search is not None:
        return Commands(next_step="place")
    events = note_degradation(state, tick, now)
    commands = plan_scale_up(state, tick, now)
    # Where groups are still to be asked, or only about a request, nobody knows now what is missing.
    is_unknown = commands.next_step == "pack" or (tick.requests is not None and tick.requests.serving)
    answers = None if is_unknown else board_answers(state, tick)
    return replace(commands, events=(*events, *commands.events), answers=answers)
