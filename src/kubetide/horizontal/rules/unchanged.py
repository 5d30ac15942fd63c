"""Reuses the verdict of the last tick if it would be the same.

An HPA whose target is to stay as it is, and of which neither the spec, the scale, the pods nor a sample has changed,
makes the same proposal whatever the time is, as long as no pod is young. What recommendations of the past make of it,
and where the new one is remembered, is asked each time.
"""

from __future__ import annotations

from kubetide.horizontal.cached_results import Unchanged
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.rules.tally import has_young
from kubetide.horizontal.rules.windows import stabilized_of
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant


def evaluate_unless_unchanged(state: State, key: Key, now: Instant) -> Verdict:
    """Return the verdict on one HPA: the last one, or a new one."""
    spec, scale = state.specs[key], state.scales.get(key)
    if (
        scale is None
        or scale.error
        or not spec.plain
        or state.early is not None
        or state.table.members.is_contested(key)
    ):
        return evaluate(state, key, now)
    known = state.unchanged.get(key)
    quick = _quick_facts_of(state, spec)
    facts = None if known is not None and known.quick == quick else _facts_of(state, spec)
    if (
        known is not None
        and known.spec is spec
        and known.scale is scale
        and known.settings is state.settings
        and (facts is None or known.facts == facts)
    ):
        known.quick = quick
        verdict = known.verdict
        assert verdict.raw is not None, "it stays by its metrics"
        held = stabilized_of(spec, state, verdict.raw, verdict.current, now)
        if held.replicas == verdict.stabilized:
            verdict.slot = held.slot
            return verdict
    verdict = evaluate(state, key, now)
    if _stays(verdict, spec) and not has_young(state, key, now):
        facts = _facts_of(state, spec) if facts is None else facts
        state.unchanged[key] = Unchanged(verdict, state.settings, spec, scale, quick, facts)
    else:
        state.unchanged.pop(key, None)
    return verdict


def settlement_as_before(state: State, verdict: Verdict) -> Settlement | None:
    """Return the settlement of the same verdict in the last tick, if it wrote and reported nothing."""
    known = state.unchanged.get(verdict.key)
    if known is None or known.verdict is not verdict or known.settlement is None:
        return None
    settlement = known.settlement
    return settlement if state.statuses[verdict.key] is settlement.status else None


def note_settlement(state: State, settlement: Settlement) -> None:
    """Note the settlement of a verdict."""
    known = state.unchanged.get(settlement.verdict.key)
    if known is not None and known.verdict is settlement.verdict:
        known.settlement = settlement if settlement.is_quiet else None


def _quick_facts_of(state: State, spec: Autoscaler) -> tuple[object, ...]:
    """Return what says, where it is equal, that ``_facts_of`` is equal too."""
    table = state.table
    return (
        table.changes,
        table.members.version,
        state.samples.version,
        state.statuses[spec.key].current_replicas,
        state.holds,
    )


def _facts_of(state: State, spec: Autoscaler) -> tuple[object, ...]:
    """Return what a verdict by samples is made from besides spec, scale and memory."""
    table, samples = state.table, state.samples
    rows = table.members_of(spec.key)
    columns = [
        column[rows].tobytes()
        for metric in spec.metrics
        for column in (samples.has.get(metric.sample_key), samples.milli.get(metric.sample_key))
        if column is not None
    ]
    return (
        table.changes,
        table.members.version,
        samples.error_of(spec.key),
        samples.unmatched.get(spec.key),
        samples.sample_counts.get(spec.key),
        samples.seen[rows].tobytes() if len(samples.seen) else b"",
        columns,
        state.statuses[spec.key].current_replicas,
        state.holds,
    )


def _stays(verdict: Verdict, spec: Autoscaler) -> bool:
    """Return whether the verdict comes from metrics alone, all of which answered, and time changes no limit of it."""
    return (
        verdict.stage == "decided"
        and verdict.raw is not None
        and not (verdict.rescale or verdict.first or verdict.error or verdict.events or verdict.late_events)
        and verdict.costs == ()
        # What policies allow depends on when the target was changed; without a change they limit nothing.
        and (verdict.stabilized == verdict.current or spec.up is None or spec.down is None)
    )
