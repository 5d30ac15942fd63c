"""The calls that create the groups of a choice, and their outcomes.

Source: Cluster Autoscaler until 1.32, node group manager of autoprovisioning: the order of the calls, the events.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import CreateGroup, EventRecord, Outcome
from kubetide.nodes.facts.causes import with_cause
from kubetide.nodes.facts.pods import pod_text
from kubetide.nodes.memory import MadeGroup
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.backoff import backoff_after_refusal
from kubetide.nodes.registry.view import Counts, GroupView
from kubetide.nodes.scale_up.reporting.events import on_status
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant

_REFUSED = "failed to create node group"


def creations(tick: Tick) -> tuple[CreateGroup, ...]:
    """Return the calls that create the missing groups of the tick's increases."""
    names = (one.group.id for one in tick.increases)
    return tuple(CreateGroup(tick.would_be[name].new) for name in names if name in tick.would_be)


def absorb_creations(
    state: State, tick: Tick, actions: Sequence[CreateGroup], results: Sequence[Outcome], now: Instant
) -> tuple[list[EventRecord], list[Reason]]:
    """Add groups that were created, leave refused ones out for a time; return events and reasons."""
    events: list[EventRecord] = []
    reasons: list[Reason] = []
    for action, outcome in zip(actions, results, strict=True):
        group_id, kind = action.new.id, action.new.instance_type
        if outcome.made is not None:
            _created(state, tick, action, outcome, now)
            said = f"NodeAutoprovisioning: created new node group {group_id}"
            events += on_status(state, "Normal", "CreatedNodeGroup", said)
            pods = state.memory.made_groups[group_id].pods
            reasons.append(reason("GroupCreated", group_id, type=kind, max=action.new.max_size, pods=pods))
        elif outcome.status == "failed":
            _refused(state, tick, group_id, outcome, now)
            said = f"NodeAutoprovisioning: attempt to create node group {group_id} failed: {outcome.error}"
            events += on_status(state, "Warning", "FailedToCreateNodeGroup", said)
            error = with_cause(outcome.cause, outcome.error)
            reasons.append(reason("GroupNotCreated", group_id, type=kind, error=error))
        elif outcome.status == "withheld":
            reasons.append(reason("GroupCreationAdvised", group_id, type=kind, max=action.new.max_size))
    return events, reasons


def _created(state: State, tick: Tick, action: CreateGroup, outcome: Outcome, now: Instant) -> None:
    made, would_be = outcome.made, tick.would_be[action.new.id]
    assert made is not None, "the call worked"
    state.set_groups((*state.groups.values(), made))
    tick.view.groups[made.id] = GroupView(made, Counts(), None)
    pods = [pod for option in tick.chosen if option.group.id == made.id for pod in option.pods]
    state.memory.made_groups[made.id] = MadeGroup(
        at=now,
        pods=len(pods),
        pod=pod_text(pods[0]) if pods else "",
        chosen_by=state.settings.expander,
        candidates=len(tick.would_be),
        labels=would_be.labels,
    )


def _refused(state: State, tick: Tick, group_id: str, outcome: Outcome, now: Instant) -> None:
    message = f"{_REFUSED}: {outcome.error}"
    state.memory.backoff[group_id] = backoff_after_refusal(
        state.memory.backoff.get(group_id), now, state.settings, outcome, message=message
    )
    tick.uncreated = (*tick.uncreated, group_id)
    tick.error = tick.error or message
    tick.error_type = tick.error_type or outcome.error_type
