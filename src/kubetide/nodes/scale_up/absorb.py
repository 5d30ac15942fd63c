"""Scale-up: what came of the increases.

Source: Cluster Autoscaler, the scale-up orchestrator: ``executeScaleUp`` and what follows it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.buffers.events import buffers_left, buffers_triggered
from kubetide.nodes.capacity.provisioning.serve import note_purchase, request_reasons
from kubetide.nodes.decision import EventRecord, IncreaseSize, Outcome
from kubetide.nodes.facts.causes import with_cause
from kubetide.nodes.memory import Attempt
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import backoff_after_refusal, is_backed_off
from kubetide.nodes.registry.cluster_state import recalculate
from kubetide.nodes.registry.failures import note_request
from kubetide.nodes.registry.stock_outs import note_shortage
from kubetide.nodes.scale_up.choosing.options import pods_left
from kubetide.nodes.scale_up.orchestrator import after_round
from kubetide.nodes.scale_up.pending.pods import kind_of
from kubetide.nodes.scale_up.reporting.events import failed_to_scale_up, scaled_up, scaling_up
from kubetide.nodes.scale_up.reporting.pod_events import not_triggered, triggered
from kubetide.nodes.scale_up.reporting.rounds import combined, min_size_round, round_of
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.scheduling import hint_key
from kubetide.units.time import Instant

_REFUSED = "failed to increase node group size"

Increases = tuple[IncreaseSize, ...]
Outcomes = tuple[Outcome, ...]


@dataclass(slots=True)
class _Calls:
    """What came of a step's calls.

    Attributes:
        refused: Groups that the cloud did not create or increase.
        errors: Its words.
        done: Whether a group was increased.
        withheld: Whether none was, as the process may not act.
    """

    refused: list[str]
    errors: list[str] = field(default_factory=list)
    done: bool = False
    withheld: bool = False
    events: list[EventRecord] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        """Whether all that was asked for was given."""
        return self.done and not self.refused


def absorb_scale_up(
    state: State, tick: Tick, actions: Increases, results: Outcomes, now: Instant
) -> tuple[list[EventRecord], list[Reason]]:
    """Apply the outcomes of increases (requests, backoff); return events for the pods, and reasons."""
    state.phases.end("scaleUp")
    if not tick.is_open and state.step != "min_size":
        return [], []
    if state.step == "min_size":
        tick.error, tick.error_type = "", ""
    calls = _absorb_calls(state, tick, actions, results, now)
    tick.error = tick.error or combined(calls.errors)
    tick.replan = bool(calls.refused) and _may_plan_anew(state, actions, results, now)
    if calls.succeeded:
        # As upstream: an increase of which a part failed starts no delay and is not looked at again.
        state.memory.last_scale_up = now
        recalculate(state, tick.view)
    if state.step == "min_size":
        tick.rounds.append(min_size_round(tick, actions, state.groups, calls.refused))
        return calls.events, calls.reasons
    if tick.requests is not None:
        note_purchase(state, tick.requests, bought=calls.succeeded, withheld=calls.withheld, now=now)
        calls.reasons += request_reasons(state, tick.requests, now)
    _settle(tick, calls)
    calls.events += _pod_events(state, tick)
    tick.rounds.append(round_of(tick, calls.refused, all_tried=any(action.parallel for action in actions)))
    _report_no_scale_down(state, tick)
    tick.is_open = False
    return calls.events, calls.reasons


def _absorb_calls(state: State, tick: Tick, actions: Increases, results: Outcomes, now: Instant) -> _Calls:
    calls = _Calls(list(tick.uncreated))
    calls.withheld = bool(results) and all(outcome.status == "withheld" for outcome in results)
    for action, outcome in zip(actions, results, strict=True):
        if outcome.tried:
            calls.events += scaling_up(state, action)
        if outcome.status == "ok":
            calls.done = True
            _increased(state, tick, action, now)
            calls.events += scaled_up(state, action)
            calls.reasons.append(_size_reason("Increased", action))
        elif outcome.status == "failed":
            calls.reasons.append(_failed(state, action, outcome, now))
            calls.reasons += note_shortage(state, action.group, outcome.cause, now)
            calls.events += failed_to_scale_up(state, action, outcome)
            calls.refused.append(action.group)
            calls.errors.append(f"{_REFUSED}: {outcome.error}")
            tick.error_type = tick.error_type or outcome.error_type
        elif outcome.status == "withheld":
            calls.reasons.append(_size_reason("IncreaseAdvised", action))
    return calls


def _size_reason(code: str, action: IncreaseSize) -> Reason:
    return reason(code, action.group, size=action.size, to=action.size + action.delta)


def _settle(tick: Tick, calls: _Calls) -> None:
    """Set the tick's result by what came of its calls."""
    if calls.withheld:
        tick.result = "ScaleUpNotTried"
    elif tick.chosen and tick.increases:
        tick.result = "ScaleUpSuccessful" if calls.succeeded else "ScaleUpError"


def _pod_events(state: State, tick: Tick) -> list[EventRecord]:
    """Return the events of the pods and buffers that the tick was for."""
    if tick.result == "ScaleUpSuccessful" and tick.chosen:
        return [*triggered(tick), *buffers_triggered(state, tick)]
    if tick.result == "ScaleUpError" or _is_replaced(state, tick):
        return []
    left = pods_left(tick.verdicts)
    return [*not_triggered(tick, left, state.groups), *buffers_left(state, tick, left)]


def _report_no_scale_down(state: State, tick: Tick) -> None:
    """Say of scale-down what upstream says of it where nothing looks for nodes that could go."""
    down = state.memory.scale_down
    word = "ScaleDownInCooldown" if tick.result == "ScaleUpSuccessful" else "ScaleDownNotTried"
    if down.status.result != word and after_round(state) != "scale_down":
        down.status = replace(down.status, result=word)


def _is_replaced(state: State, tick: Tick) -> bool:
    """Return whether no pod hears of the result: as upstream, that of the increases to the minimum takes its place."""
    return tick.result == "ScaleUpLimitedByMaxNodesTotal" and state.settings.enforce_node_group_min_size


def _may_plan_anew(state: State, actions: Increases, results: Outcomes, now: Instant) -> bool:
    """Return whether other groups may be asked in the same tick: none that failed may be asked again in it."""
    failed = [one.group for one, outcome in zip(actions, results, strict=True) if outcome.status == "failed"]
    left_alone = all(is_backed_off(state.memory.backoff.get(group), now) for group in failed)
    return bool(state.settings.stock_out_memory) and left_alone


def _increased(state: State, tick: Tick, action: IncreaseSize, now: Instant) -> None:
    memory, group = state.memory, state.groups[action.group]
    note_request(state, group, action.delta, now)
    memory.last_scale_up_of[group.id] = now
    memory.increases = (*memory.increases, (now, action.delta))
    _note_plan(state, tick, action)
    state.set_target(group.id, action.size + action.delta)
    if action.why == "pods":
        kinds: dict[str, list[tuple[str, str]]] = {}
        helped = (one.pods for one in tick.chosen if group.id in {one.group.id, *one.similar})
        for pod in itertools.chain.from_iterable(helped):
            key = (pod.metadata.namespace, pod.metadata.name)
            if key not in tick.demand.virtual:
                kinds.setdefault(kind_of(pod), []).append(key)
        memory.attempts += tuple(
            Attempt(group.id, action.delta, now, kind, tuple(keys)) for kind, keys in kinds.items()
        )


def _note_plan(state: State, tick: Tick, action: IncreaseSize) -> None:
    """Remember for which pods each new node was bought, where the choice said so."""
    if action.why != "pods":
        return
    for option in tick.chosen:
        at = 0
        for group_id in (option.group.id, *option.similar):
            share = sum(
                one.size - one.group.target_size for one in tick.increases if one.group.id == group_id
            )
            nodes = option.plan[at : at + share]
            at += share
            if group_id == action.group and nodes:
                keys = tuple(tuple(map(hint_key, pods)) for pods in nodes)
                state.memory.planned[group_id] = (*state.memory.planned.get(group_id, ()), *keys)


def _failed(state: State, action: IncreaseSize, outcome: Outcome, now: Instant) -> Reason:
    memory = state.memory
    memory.backoff[action.group] = backoff_after_refusal(
        memory.backoff.get(action.group), now, state.settings, outcome, message=f"{_REFUSED}: {outcome.error}"
    )
    memory.last_failure_of[action.group] = now
    error = with_cause(outcome.cause, outcome.error)
    return reason("IncreaseRefused", action.group, delta=action.delta, error=error)
