"""Pods out: how many replicas each HPA's target should have.

One tick over all HPAs, as upstream does it for one (horizontal controller v1.36):

1. Without a readable scale nothing is decided, and the HPA says so.
2. A target at 0 replicas is left alone; one outside its bounds goes to the bound at once.
3. Else each metric makes a proposal from what the pods add up to (``tally``, ``metrics``,
   ``proposal``), and the largest wins. Where metrics fail, the others may scale up but not down.
4. Recent recommendations hold the winner back (``stabilization``).
5. Policies, and the bounds, limit how far one tick goes (``limits``).

``absorb`` then turns the outcome of the writes into statuses, events and memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.horizontal import conditions as say
from kubetide.horizontal import events
from kubetide.horizontal.decision import (
    Commands,
    Computation,
    Result,
    ScaleOutcome,
    ScaleWrite,
    Settlement,
    Verdict,
)
from kubetide.horizontal.limits import limit_by_rules, limit_plainly
from kubetide.horizontal.memory import Memory, Recommendation, ScaleEvent, remember_event
from kubetide.horizontal.metrics.registry import propose
from kubetide.horizontal.metrics.types import Metric, MetricFailure, Tally
from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.stabilization import stabilize, stabilize_both_ways
from kubetide.horizontal.state import State
from kubetide.horizontal.status import action_of, changed_fields, changed_status
from kubetide.horizontal.tally import tally_columns, tally_of
from kubetide.horizontal.views import Key, ScaleView
from kubetide.objects.hpa import MetricStatus
from kubetide.objects.meta import Condition
from kubetide.units.time import Instant, format_rfc3339

# Below so many pods, walking over them costs less than a pass in columns.
COLUMNS_FROM = 200

_ERROR_OF_STAGE = {
    "version": "invalid API version in scale target reference: {error}",
    "resource": "unable to determine resource for scale target reference: {error}",
    "query": "failed to query scale subresource for {reference}: {error}",
}
_NO_MEMORY = Memory()
_NO_STATUS = MetricStatus()  # upstream keeps an entry with an empty type for a metric that failed

Tallies = Mapping[tuple[Key, int], Tally]


def decide(state: State, now: Instant, *, columns_from: int = COLUMNS_FROM) -> Commands:
    """Gives the scale writes, and the verdict on every HPA, in order of namespace and name."""
    tallies = _tallies(state, now) if len(state.table.rows) >= columns_from else {}
    verdicts = tuple(judge(state, key, now, tallies) for key in state.hpas)
    return Commands(now, tuple(_write(state, verdict) for verdict in verdicts if verdict.rescale), verdicts)


def judge(state: State, key: Key, now: Instant, tallies: Tallies) -> Verdict:
    """Decides about one HPA."""
    spec, scale = state.specs[key], state.scales.get(key)
    verdict = Verdict(key)
    if scale is None or scale.error:
        return _unread(verdict, spec, scale)
    verdict.notes.append(say.GOT_SCALE)
    verdict.current = current = scale.spec_replicas
    memory = state.memory.get(key, _NO_MEMORY)
    verdict.first = not memory.recommendations
    if current == 0 and not _may_come_back(state, spec):
        verdict.notes.append(say.SCALING_DISABLED)
        verdict.forget_zero = not state.settings.gates.scale_to_zero
    elif current > spec.maximum:
        verdict.desired, verdict.why = spec.maximum, events.ABOVE_MAXIMUM
    elif current < spec.minimum and current != 0:
        verdict.desired, verdict.why = spec.minimum, events.BELOW_MINIMUM
    else:
        best = _best_proposal(verdict, state, spec, scale, now, tallies)
        if best is None:
            return verdict
        _normalize(verdict, spec, memory, best, state, now)
    verdict.rescale = verdict.desired != current
    return verdict


def _unread(verdict: Verdict, spec: Autoscaler, scale: ScaleView | None) -> Verdict:
    error = scale.error if scale else "the scale has not been read"
    stage = scale.error_stage if scale else "query"
    verdict.stage = "unread"
    verdict.notes.append(say.scale_unreadable(error))
    verdict.events.append(events.scale_unreadable(error))
    verdict.error = _ERROR_OF_STAGE[stage or "query"].format(error=error, reference=spec.reference)
    verdict.error_label = "spec" if stage == "version" else "internal"
    return verdict


def _may_come_back(state: State, spec: Autoscaler) -> bool:
    """Whether a target at zero is one that this loop has scaled to zero and may scale up again."""
    if not state.settings.gates.scale_to_zero:
        return False
    went = say.condition_status(state.statuses[spec.key].conditions, say.SCALED_TO_ZERO) == "True"
    return went and (spec.minimum != 0 or spec.external)


# ── proposals ───────────────────────────────────────────────────────────────────────────────────


def _tallies(state: State, now: Instant) -> Tallies:
    """Adds up the pods of all HPAs, one pass in columns for each resource (and container)."""
    found: dict[tuple[Key, int], Tally] = {}
    for sample_key in state.sample_keys():
        segments = state.segments(sample_key)
        places = [_places(state.specs[hpa], sample_key) for hpa in segments.hpas]
        # An HPA may ask for one resource twice, by utilization and by average: one more pass each.
        for turn in range(max(map(len, places), default=0)):
            chosen = [place[min(turn, len(place) - 1)] for place in places]
            metrics = [state.specs[hpa].metrics[at] for hpa, at in zip(segments.hpas, chosen, strict=True)]
            columns = tally_columns(state, segments, metrics, now)
            for hpa, at, tally in zip(segments.hpas, chosen, columns, strict=True):
                if tally is not None:
                    found[hpa, at] = tally
    return found


def _places(spec: Autoscaler, sample_key: tuple[str, str]) -> list[int]:
    return [
        at for at, metric in enumerate(spec.metrics) if metric.resource and metric.sample_key == sample_key
    ]


def _best_proposal(
    verdict: Verdict, state: State, spec: Autoscaler, scale: ScaleView, now: Instant, tallies: Tallies
) -> int | None:
    """Gives the largest proposal, or None with the verdict saying why there is none."""
    if not _selector_is_sound(verdict, state, scale):
        return None
    before = state.statuses[spec.key].current_replicas
    best, name, failures = 0, "", []
    proposals, known, statuses, computations = [], [], [], []
    for at, metric in enumerate(spec.metrics):
        tally = _tally_for(state, spec.key, metric, now, tallies.get((spec.key, at)))
        found = propose(metric, tally, verdict.current, spec.tolerance)
        proposals.append(found)
        known.append(tally)
        if isinstance(found, MetricFailure):
            failures.append(found)
            statuses.append(_NO_STATUS)
            verdict.events.append(events.EventNote(events.WARNING, found.reason, found.text))
            computations.append(Computation(metric.type, "none", found.error_label))
            continue
        statuses.append(found.status)
        computations.append(Computation(metric.type, action_of(before, found.replicas), "none"))
        if best == 0 or found.replicas > best:
            best, name = found.replicas, found.name
    verdict.proposals, verdict.tallies = proposals, known
    verdict.metrics, verdict.computations = tuple(statuses), tuple(computations)
    if failures:
        first = failures[0]
        verdict.error = f"invalid metrics ({len(failures)} invalid out of {len(spec.metrics)}), first error is: {first.prefix}{first.text}"
        verdict.error_label = "internal"
        if len(failures) == len(spec.metrics) or best < verdict.current:
            _uncomputed(verdict, spec, say.invalid_metric(first.reason, first.text))
            return None
    verdict.notes.append(say.valid_metric(name))
    best = max(best, 0)
    if best > verdict.current:
        verdict.why = f"{name} above target"
    elif best < verdict.current:
        verdict.why = events.ALL_BELOW_TARGET
    return best


def _tally_for(state: State, key: Key, metric: Metric, now: Instant, tally: Tally | None) -> Tally | str:
    """Gives what the pods add up to, or why there are no samples."""
    if not metric.resource:
        return ""
    error = state.samples.error_of(key)
    if error is not None:
        return f"unable to fetch metrics from resource metrics API: {error}"
    return tally_of(state, key, metric, now) if tally is None else tally


def _selector_is_sound(verdict: Verdict, state: State, scale: ScaleView) -> bool:
    """Whether the pods of the target can be told from those of other HPAs' targets."""
    spec = state.specs[verdict.key]
    if not scale.selector:
        verdict.events.append(events.EventNote(events.WARNING, "SelectorRequired", "selector is required"))
        verdict.error = "selector is required"
        _uncomputed(verdict, spec, say.SELECTOR_MISSING)
        return False
    claimants = state.table.members.claimants(verdict.key)
    if len(claimants) > 1:
        names = " ".join(f"{namespace}/{name}" for namespace, name in claimants)
        text = f"pods by selector {scale.selector} are controlled by multiple HPAs: [{names}]"
        verdict.events.append(events.EventNote(events.WARNING, "AmbiguousSelector", text))
        verdict.error = text
        _uncomputed(verdict, spec, say.not_active("AmbiguousSelector", text))
        return False
    return True


def _uncomputed(verdict: Verdict, spec: Autoscaler, note: say.Note) -> None:
    verdict.stage = "uncomputed"
    verdict.notes.append(note)
    verdict.late_events.append(events.metrics_failed(verdict.error))
    verdict.error = (
        "failed to compute desired number of replicas based on listed metrics for "
        f"{spec.reference}: {verdict.error}"
    )
    verdict.error_label = "internal"


# ── from the proposal to the number ─────────────────────────────────────────────────────────────


def _normalize(
    verdict: Verdict, spec: Autoscaler, memory: Memory, proposal: int, state: State, now: Instant
) -> None:
    """Stabilizes the proposal and holds it within its limits."""
    recommendations: Sequence[Recommendation] = memory.recommendations or [
        Recommendation(now, verdict.current)
    ]
    current, minimum, maximum = verdict.current, spec.minimum, spec.maximum
    if spec.up is None or spec.down is None:
        window = state.settings.downscale_stabilization
        held = stabilize(recommendations, proposal, window=window, now=now)
        limited = limit_plainly(held.replicas, current, minimum=minimum, maximum=maximum)
        why_held = say.SCALE_DOWN_STABILIZED
    else:
        up, down = spec.up, spec.down
        held = stabilize_both_ways(recommendations, proposal, current, up=up, down=down, now=now)
        limited = limit_by_rules(
            held.replicas, current, minimum=minimum, maximum=maximum, up=up, down=down,
            ups=memory.ups, downs=memory.downs, now=now,
        )  # fmt: skip
        why_held = say.SCALE_UP_STABILIZED if proposal >= current else say.SCALE_DOWN_STABILIZED
    verdict.notes.append(say.READY_FOR_NEW_SCALE if held.replicas == proposal else why_held)
    verdict.notes.append(say.scaling_limited(limited.reason, limited=limited.replicas != held.replicas))
    verdict.raw, verdict.slot, verdict.stabilized = proposal, held.slot, held.replicas
    verdict.desired, verdict.limit = limited.replicas, limited.reason
    if current == 0 and verdict.desired < minimum:
        verdict.desired = minimum
        if proposal < minimum:
            verdict.why = events.BELOW_MINIMUM


def _write(state: State, verdict: Verdict) -> ScaleWrite:
    spec, scale = state.specs[verdict.key], state.scales[verdict.key]
    namespace, name = verdict.key
    return ScaleWrite(
        namespace=namespace,
        name=name,
        api_version=spec.api_version,
        kind=spec.kind,
        target=spec.target,
        replicas=verdict.desired,
        resource_version=scale.resource_version,
    )


# ── after the writes ────────────────────────────────────────────────────────────────────────────


def absorb(state: State, commands: Commands, outcomes: Sequence[ScaleOutcome]) -> Result:
    """Takes in what came of the writes: remembers, and gives statuses, events and labels."""
    found = {(outcome.namespace, outcome.name): outcome for outcome in outcomes}
    stamp = format_rfc3339(commands.at)
    return Result(
        tuple(
            _settle(state, verdict, found.get(verdict.key), commands.at, stamp)
            for verdict in commands.verdicts
        )
    )


def _settle(
    state: State, verdict: Verdict, outcome: ScaleOutcome | None, now: Instant, stamp: str
) -> Settlement:
    key, spec = verdict.key, state.specs[verdict.key]
    before = state.statuses[key]
    if verdict.stage != "unread":
        _remember_proposal(state, verdict, now)
    conditions = say.with_notes(before.conditions, verdict.notes, stamp)
    said: tuple[events.EventNote, ...] = tuple(verdict.events)
    decided = verdict.stage == "decided"
    action, error, label, rescaled_at = "none", verdict.error, verdict.error_label, None
    if verdict.rescale:
        refused = outcome.error if outcome else "the write was not carried out"
        written = format_rfc3339(outcome.at) if outcome else stamp
        if refused:
            decided = False
            said += (events.rescale_failed(verdict.desired, verdict.why, refused),)
            conditions = say.with_notes(conditions, [say.rescale_failed(refused)], written)
            error, label = f"failed to rescale {spec.reference}: {refused}", "internal"
        else:
            said += (events.rescaled(verdict.desired, verdict.why),)
            conditions = say.with_notes(conditions, [say.rescaled(verdict.desired)], written)
            _remember_change(state, verdict, spec, outcome.at if outcome else now)
            action, rescaled_at = action_of(verdict.current, verdict.desired), written
    if action != "none" or verdict.forget_zero:
        conditions = _with_zero(state, verdict, spec, conditions, rescaled_at or stamp)
    status = changed_status(before, verdict, conditions, rescaled_at=rescaled_at, settled=decided)
    state.statuses[key] = status
    return Settlement(
        verdict=verdict,
        status=status,
        changes=changed_fields(before, status),
        events=said,
        late_events=tuple(verdict.late_events),
        action=action,
        error=error,
        error_label=label,
        wanted=verdict.desired if decided else None,
        normal_end=decided,
    )


def _with_zero(
    state: State, verdict: Verdict, spec: Autoscaler, conditions: tuple[Condition, ...] | None, stamp: str
) -> tuple[Condition, ...] | None:
    """Keeps the ScaledToZero condition after a rescale; with the gate off it goes."""
    if not state.settings.gates.scale_to_zero:
        return say.without(conditions, say.SCALED_TO_ZERO)
    went = verdict.desired == 0 and spec.minimum == 0 and spec.external
    return say.with_notes(conditions, [say.WENT_TO_ZERO if went else say.STAYED_ABOVE_ZERO], stamp)


def _remember_proposal(state: State, verdict: Verdict, now: Instant) -> None:
    """Stores the first recommendation (the current number) and the raw proposal."""
    memory = state.memory.setdefault(verdict.key, Memory())
    if verdict.first:
        memory.recommendations.append(Recommendation(now, verdict.current))
    if verdict.raw is None:
        return
    if verdict.slot < 0:
        memory.recommendations.append(Recommendation(now, verdict.raw))
    else:
        memory.recommendations[verdict.slot] = Recommendation(now, verdict.raw)


def _remember_change(state: State, verdict: Verdict, spec: Autoscaler, now: Instant) -> None:
    """Stores a scale event; only HPAs with behaviour have use for it."""
    if spec.up is None or spec.down is None:
        return
    memory = state.memory.setdefault(verdict.key, Memory())
    change = verdict.desired - verdict.current
    if change > 0:
        remember_event(memory.ups, ScaleEvent(now, change), spec.up.longest_period)
    else:
        remember_event(memory.downs, ScaleEvent(now, -change), spec.down.longest_period)
