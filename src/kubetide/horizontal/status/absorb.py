"""After the writes: applies their outcomes to the verdicts and the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from kubetide.horizontal.batch.hpas import HpaColumns
from kubetide.horizontal.decision import Commands, Result, ScaleOutcome, Settlement, Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.memory import (
    Change,
    OptionMemory,
    Recommendation,
    ScaleEvents,
    remember_change,
)
from kubetide.horizontal.options.flapping import recent_changes
from kubetide.horizontal.options.forecasting import learn
from kubetide.horizontal.rules.ambiguous_selectors import note_read_selectors
from kubetide.horizontal.rules.unchanged import note_settlement, settlement_as_before
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say
from kubetide.horizontal.status import events
from kubetide.horizontal.status.patches import changed_fields, only_values
from kubetide.horizontal.status.status import action_of, changed_status
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.meta import Condition, Key
from kubetide.units.steps import Steps, finish, is_pause
from kubetide.units.time import Instant, format_rfc3339
from kubetide.units.vectors import BoolVector, Int64Vector


def absorb(state: State, commands: Commands, outcomes: Sequence[ScaleOutcome]) -> Result:
    """Run ``absorbing`` to its end and return its result."""
    return finish(absorbing(state, commands, outcomes))


def absorbing(state: State, commands: Commands, outcomes: Sequence[ScaleOutcome]) -> Steps[Result]:
    """Apply the outcomes of the writes: update the memory; return statuses, events and labels."""
    found = {(outcome.namespace, outcome.name): outcome for outcome in outcomes}
    note_read_selectors(state)
    _remember_proposals(state, commands)
    learn(state, commands.verdicts, commands.at)
    this, at = state.last_pass, commands.at
    if this is None or this.verdicts is not commands.verdicts:
        # What is known of the last pass does not hold any longer.
        this = state.last_pass = None
    verdicts = commands.verdicts
    settlements: list[Settlement | None] = [None] * len(verdicts)
    to_settle: Int64Vector = np.arange(len(verdicts))
    if this is not None and this.before:
        settlements[:] = this.before
        to_settle = np.nonzero(~this.repeated | _late_of(state, this.columns))[0]
    quiet: list[bool] = []
    for position in to_settle.tolist():
        verdict = verdicts[position]
        if verdict.stage == "waiting":
            settlements[position] = Settlement(verdict, state.statuses[verdict.key], (), (), ())
            quiet.append(True)
            continue
        again = None if verdict.key in state.late else settlement_as_before(state, verdict)
        if again is not None:
            settlements[position] = again
            quiet.append(True)
            continue
        one = _settle(state, verdict, found.get(verdict.key), at, settlements[position])
        verdict.came = state.forecasts.came.get(verdict.key)
        note_settlement(state, one)
        settlements[position] = one
        quiet.append(one.is_quiet)
        if is_pause(len(quiet)):
            yield
    settled = tuple(cast("list[Settlement]", settlements))
    if this is not None:
        this.quiet = np.ones(len(settled), np.bool_)
        this.quiet[to_settle] = quiet
        this.settlements, this.before = settled, ()
    return Result(settled)


def _settle(
    state: State,
    verdict: Verdict,
    outcome: ScaleOutcome | None,
    now: Instant,
    last: Settlement | None = None,
) -> Settlement:
    """Settle one HPA; ``last`` is its result of the tick before, where that is known."""
    key, spec = verdict.key, state.specs[verdict.key]
    before, nodes = state.statuses[key], state.nodes.get(key)
    unchanged = (
        last is not None
        and last.kept
        and last.nodes is nodes
        and last.verdict.notes is verdict.notes
        and last.status.conditions is before.conditions
    )
    conditions = before.conditions
    if not unchanged:
        conditions = say.with_notes(before.conditions, say.without_nodes(verdict.notes, nodes), now)
    said: tuple[events.EventNote, ...] = verdict.events
    decided = verdict.stage == "decided"
    action, error, label = "none", verdict.error, verdict.error_label
    rescaled_at: Instant | None = None
    change = 0
    late = state.late.get(key)
    if late is not None and late.error:
        said = (events.rescale_failed(late.desired, late.why, late.error), *said)
    elif late is not None:
        said = (events.rescaled(late.desired, late.why), *said)
        conditions = _with_zero(state, late.desired, spec, conditions, late.at)
        rescaled_at, change = late.at, late.desired - late.current
    withheld = outcome is not None and outcome.withheld
    pending = "" if outcome is None else outcome.pending
    if verdict.rescale and not (withheld or pending):
        refused = outcome.error if outcome else "the write was not carried out"
        written = outcome.at if outcome else now
        if refused:
            decided = False
            said += (events.rescale_failed(verdict.desired, verdict.why, refused),)
            conditions = say.with_notes(conditions, [say.rescale_failed(refused)], written)
            error, label = f"failed to rescale {spec.reference}: {refused}", "internal"
        else:
            said += (events.rescaled(verdict.desired, verdict.why),)
            conditions = say.with_notes(conditions, [say.rescaled(verdict.desired)], written)
            change = verdict.desired - verdict.current
            _remember_change(state, spec, key, Change(written, change))
            action, rescaled_at = action_of(verdict.current, verdict.desired), written
    if action != "none" or verdict.forget_zero:
        at = now if action == "none" or rescaled_at is None else rescaled_at
        conditions = _with_zero(state, verdict.desired, spec, conditions, at)
    status = changed_status(
        before,
        verdict,
        conditions,
        rescaled_at=None if rescaled_at is None else format_rfc3339(rescaled_at),
        settled=decided,
        generation=spec.generation,
    )
    changes = changed_fields(before, status)
    held = _waits(state, key, changes, before, status, now)
    if held:
        status, changes = before, ()
    state.statuses[key] = status
    if spec.options.any:
        state.options[key] = _option_memory(
            state.options.get(key, OptionMemory()), verdict, spec, change, now
        )
    return Settlement(
        verdict=verdict,
        status=status,
        changes=changes,
        events=said,
        late_events=verdict.late_events,
        action=action,
        error=error,
        error_label=label,
        desired=verdict.desired if decided else None,
        normal_end=decided,
        withheld=withheld,
        pending=pending,
        held=held,
        kept=conditions is before.conditions,
        nodes=nodes,
    )


def _waits(
    state: State, key: Key, changes: tuple[str, ...], before: HpaStatus, after: HpaStatus, now: Instant
) -> bool:
    """Return whether a change of the status is not written yet; notes when one is."""
    period = state.settings.metrics_status_period
    if not period or not changes:
        return False
    written = state.written.get(key)
    if written is not None and now < written + period and only_values(before, after, changes):
        return True
    state.written[key] = now
    return False


def _with_zero(
    state: State, desired: int, spec: Autoscaler, conditions: tuple[Condition, ...] | None, now: Instant
) -> tuple[Condition, ...] | None:
    """Keep the ScaledToZero condition after a rescale; with the gate off it goes."""
    if not state.settings.scales_from_zero:
        return say.without(conditions, say.SCALED_TO_ZERO)
    went = desired == 0 and spec.minimum == 0 and spec.external
    return say.with_notes(conditions, [say.WENT_TO_ZERO if went else say.STAYED_ABOVE_ZERO], now)


def _remember_proposals(state: State, commands: Commands) -> None:
    """Store first recommendations (the current numbers) and the raw proposals."""
    remembered = state.recommendations
    this = state.last_pass
    asked = commands.verdicts
    if this is not None and this.verdicts is asked:
        at = this.stored
        remembered.store(this.columns.row[at], this.slots[at], commands.at, this.proposals[at])
        # Those are no first ones either.
        asked = tuple([asked[position] for position in np.nonzero(~at)[0].tolist()])
    for verdict in asked:
        if verdict.first and verdict.stage not in {"unread", "waiting"}:
            remembered.put(verdict.key, [Recommendation(commands.at, verdict.current)])
    for verdict in asked:
        if verdict.raw is not None:
            remembered.store_one(verdict.key, verdict.slot, commands.at, verdict.raw)


def _option_memory(
    before: OptionMemory, verdict: Verdict, spec: Autoscaler, change: int, now: Instant
) -> OptionMemory:
    """Return what the options of an HPA remember after a decision, each only what it needs."""
    options = spec.options
    by_metrics = verdict.raw is not None and not verdict.fallback
    new = Change(now, change) if change else None
    return OptionMemory(
        looked_at=now if options.sync_period else None,
        last_good=(verdict.raw if by_metrics else before.last_good) if options.fallback else None,
        changes=recent_changes(before.changes, new, now) if options.flap_report else (),
        rose_at=(now if change > 0 else before.rose_at) if options.hold_until_ready else None,
    )


def _late_of(state: State, columns: HpaColumns) -> BoolVector:
    """Return, per HPA, whether the outcome of an earlier write has come."""
    found = np.zeros(len(columns.position), np.bool_)
    found[[columns.position[key] for key in state.late if key in columns.position]] = True
    return found


def _remember_change(state: State, spec: Autoscaler, key: Key, change: Change) -> None:
    """Store a change; only HPAs with behavior have use for it."""
    if spec.up is not None and spec.down is not None:
        known = state.events.setdefault(key, ScaleEvents())
        remember_change(known, change, spec.up.longest_period, spec.down.longest_period)
