"""Deciding about one HPA: from its scale and what is known of its metrics to a verdict.

What each step does and where it stands is in ``decide``.
"""

from __future__ import annotations

from functools import lru_cache

from kubetide.horizontal.decision import Computation, Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import Key, ScaleView
from kubetide.horizontal.memory import OptionMemory, Recommendation, ScaleEvents
from kubetide.horizontal.metrics.registry import propose
from kubetide.horizontal.metrics.types import MetricFailure, Tally
from kubetide.horizontal.options.cadence import is_due
from kubetide.horizontal.options.deletion_cost import costs_of_idlest
from kubetide.horizontal.options.emptiest_node import costs_of_emptiest
from kubetide.horizontal.options.fallback import fallback_proposal
from kubetide.horizontal.options.forecasting import beyond_saturation, is_rolling, load_of, raised
from kubetide.horizontal.options.forecasting import why_of as why_foretold
from kubetide.horizontal.options.pause import unpaused
from kubetide.horizontal.options.until_ready import held_until_ready
from kubetide.horizontal.rules.known import known_of, pods_of, samples_of
from kubetide.horizontal.rules.limits import Limited, limit_by_rules, limit_plainly
from kubetide.horizontal.rules.stabilization import Stabilized, stabilize, stabilize_both_ways
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say
from kubetide.horizontal.status import events
from kubetide.horizontal.status.status import action_of
from kubetide.objects.hpa import MetricStatus
from kubetide.units.time import Instant

_ERROR_OF_STAGE = {
    "version": "invalid API version in scale target reference: {error}",
    "resource": "unable to determine resource for scale target reference: {error}",
    "query": "failed to query scale subresource for {reference}: {error}",
}
_NO_EVENTS = ScaleEvents()
_NO_MEMORY = OptionMemory()
_NO_STATUS = MetricStatus()  # upstream keeps an entry with an empty type for a metric that failed


def judge(state: State, key: Key, now: Instant) -> Verdict:
    """Decide about one HPA."""
    spec, scale = state.specs[key], state.scales.get(key)
    verdict = Verdict(key)
    if scale is None or scale.error:
        return _unread(verdict, spec, scale)
    own = state.options.get(key, _NO_MEMORY)
    if not is_due(spec.options.sync_period, state.settings.sync_period, own.looked_at, now):
        verdict.stage, verdict.current = "waiting", scale.spec_replicas
        return verdict
    verdict.events = tuple(
        events.EventNote(events.WARNING, "InvalidAnnotation", problem) for problem in spec.options.problems
    )
    verdict.notes = (say.GOT_SCALE,)
    if spec.minimum > spec.maximum:
        return _boundless(verdict, spec, scale)
    verdict.current = current = scale.spec_replicas
    verdict.first = not state.recommendations.of(key)
    if current == 0 and not _may_come_back(state, spec):
        verdict.notes += (say.SCALING_DISABLED,)
        verdict.forget_zero = not state.settings.gates.scale_to_zero
    elif current > spec.maximum:
        verdict.desired, verdict.why = spec.maximum, events.ABOVE_MAXIMUM
    elif current < spec.minimum and current != 0:
        verdict.desired, verdict.why = spec.minimum, events.BELOW_MINIMUM
    else:
        best = _best_proposal(verdict, state, spec, scale, now)
        if best is None:
            return verdict
        if spec.options.forecasts:
            best = _with_load(verdict, state, spec, scale, best)
        _normalize(verdict, spec, best, state, now)
        if spec.options.forecasts and current:
            _look_ahead(verdict, state, spec, now)
    if spec.options.hold_until_ready:
        _wait_for_ready(verdict, state, spec, scale, now)
    if spec.options.pause:
        _pause(verdict, spec.options.pause)
    verdict.rescale = verdict.desired != current
    if spec.options.emptiest_node_first and verdict.desired < current:
        by_node = state.pods_by_node()
        verdict.costs = costs_of_emptiest(pods_of(state, spec, scale), by_node, current - verdict.desired)
    elif spec.options.idlest_first and verdict.desired < current:
        verdict.costs = _costs(state, spec, scale, leaving=current - verdict.desired)
    return verdict


def _with_load(verdict: Verdict, state: State, spec: Autoscaler, scale: ScaleView, best: int) -> int:
    """Note the load; return the proposal with what CPU limits hide of it."""
    load = load_of(state, spec, scale, verdict)
    verdict.rolling = is_rolling(pods_of(state, spec, scale))
    if load is None:
        return best
    verdict.load, verdict.saturated = load.pods, load.saturated
    more = beyond_saturation(state, spec, load, best)
    if more > best:
        verdict.beyond, verdict.why = more, "load at the CPU limit"
    return more


def _look_ahead(verdict: Verdict, state: State, spec: Autoscaler, now: Instant) -> None:
    """Raise the number to what is foretold."""
    verdict.reactive = verdict.desired
    number, verdict.ahead = raised(
        state,
        spec,
        verdict.desired,
        verdict.current,
        now,
        lambda wanted: limit_of(spec, state, wanted, verdict.current, now),
    )
    if number > max(verdict.desired, verdict.current):
        verdict.why = why_foretold(verdict.ahead)
    verdict.desired = number


def _pause(verdict: Verdict, pause: str) -> None:
    """Leave the number as it is where its direction is paused."""
    left = unpaused(pause, verdict.current, verdict.desired)
    if left != verdict.desired:
        verdict.unpaused, verdict.desired = verdict.desired, left
        verdict.notes += (say.paused(verdict.unpaused),)


def _wait_for_ready(verdict: Verdict, state: State, spec: Autoscaler, scale: ScaleView, now: Instant) -> None:
    """Leave the number as it is while pods of the last scale-up are not ready; bounds hold all the same."""
    if verdict.raw is None or verdict.desired >= verdict.current:
        return
    rose_at = state.options.get(spec.key, _NO_MEMORY).rose_at
    serving = sum(pod.phase == "Running" and pod.ready == "True" for pod in pods_of(state, spec, scale))
    _, known = verdict.grounds() if verdict.grounds is not None else ((), ())
    # A pod that serves counts as not ready until its sample is of a time when it was.
    ready = min([serving, *(one.ready for one in known if isinstance(one, Tally))])
    left = held_until_ready(
        verdict.desired,
        verdict.current,
        ready=ready,
        rose_at=None if rose_at is None else Instant(rose_at),
        longest=state.settings.cpu_initialization_period,
        now=now,
    )
    if left != verdict.desired:
        verdict.unready, verdict.desired, verdict.ready = verdict.desired, left, ready
        verdict.notes += (say.held_until_ready(verdict.unready, ready, verdict.current),)


def _costs(state: State, spec: Autoscaler, scale: ScaleView, *, leaving: int) -> tuple[tuple[str, int], ...]:
    """Mark the pods that use least of what the first metric of pods measures."""
    for metric in spec.metrics:
        samples = samples_of(state, spec, metric, scale)
        if samples:
            usage = {name: sample.milli for name, sample in samples.items()}
            return costs_of_idlest([pod.name for pod in pods_of(state, spec, scale)], usage, leaving)
    return ()


def _unread(verdict: Verdict, spec: Autoscaler, scale: ScaleView | None) -> Verdict:
    error = scale.error if scale else "the scale has not been read"
    stage = scale.error_stage if scale else "query"
    verdict.stage = "unread"
    verdict.notes = (say.scale_unreadable(error),)
    verdict.events = (events.scale_unreadable(error),)
    verdict.error = _ERROR_OF_STAGE[stage or "query"].format(error=error, reference=spec.reference)
    verdict.error_label = "spec" if stage == "version" else "internal"
    return verdict


def _boundless(verdict: Verdict, spec: Autoscaler, scale: ScaleView) -> Verdict:
    """No number is right. The API refuses such a spec; upstream would scale from one bound to the other for ever."""
    text = (
        f"minReplicas {spec.minimum} is above maxReplicas {spec.maximum}: no number of replicas fulfils both; "
        "lower minReplicas or raise maxReplicas"
    )
    verdict.current = scale.spec_replicas
    verdict.events += (events.EventNote(events.WARNING, "InvalidBounds", text),)
    verdict.error = text
    _uncomputed(verdict, spec, say.not_active("InvalidBounds", text))
    return verdict


def _may_come_back(state: State, spec: Autoscaler) -> bool:
    """Return whether a target at zero is one that this loop has scaled to zero and may scale up again."""
    if not state.settings.gates.scale_to_zero:
        return False
    went = say.condition_status(state.statuses[spec.key].conditions, say.SCALED_TO_ZERO) == "True"
    return went and (spec.minimum != 0 or spec.external)


# ── proposals ───────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=64)
def computation(metric_type: str, action: str) -> Computation:
    """Return the labels of a computation that came to a proposal."""
    return Computation(metric_type, action, "none")


def _best_proposal(
    verdict: Verdict, state: State, spec: Autoscaler, scale: ScaleView, now: Instant
) -> int | None:
    """Return the largest proposal, or None with the verdict saying why there is none."""
    if not _selector_is_sound(verdict, state, scale):
        return None
    before = state.statuses[spec.key].current_replicas
    best, name, failures = 0, "", []
    proposals, known, statuses, computations = [], [], [], []
    for metric in spec.metrics:
        seen = known_of(state, spec, metric, scale, now)
        found = propose(metric, seen, verdict.current, spec.tolerance)
        proposals.append(found)
        known.append(seen)
        if isinstance(found, MetricFailure):
            failures.append(found)
            statuses.append(_NO_STATUS)
            verdict.events += (events.EventNote(events.WARNING, found.reason, found.text),)
            computations.append(Computation(metric.type, "none", found.error_label))
            continue
        statuses.append(found.status)
        computations.append(computation(metric.type, action_of(before, found.replicas)))
        if best == 0 or found.replicas > best:
            best, name = found.replicas, found.name
    verdict.grounds = lambda: (proposals, known)
    verdict.metrics, verdict.computations = tuple(statuses), tuple(computations)
    if failures:
        first = failures[0]
        verdict.error = f"invalid metrics ({len(failures)} invalid out of {len(spec.metrics)}), first error is: {first.prefix}{first.text}"
        verdict.error_label = "internal"
        if len(failures) == len(spec.metrics) or best < verdict.current:
            instead = _fallback(verdict, spec, state, best, first)
            if instead is not None:
                return instead
            _uncomputed(verdict, spec, say.invalid_metric(first.reason, first.text))
            return None
    verdict.notes += (say.valid_metric(name),)
    best = max(best, 0)
    verdict.why = why_of(name, best, verdict.current)
    return best


def _fallback(
    verdict: Verdict, spec: Autoscaler, state: State, best: int, first: MetricFailure
) -> int | None:
    """Return what stands in for metrics that failed, never less than those that answered want."""
    last_good = state.options.get(spec.key, _NO_MEMORY).last_good
    found = fallback_proposal(spec.options.fallback, verdict.current, last_good)
    if found is None:
        return None
    found = max(found, best)
    verdict.fallback = True
    verdict.notes += (say.fallen_back(found, first.text),)
    verdict.why = f"fallback to {found}"
    return found


def _selector_is_sound(verdict: Verdict, state: State, scale: ScaleView) -> bool:
    """Return whether the pods of the target can be told from those of other HPAs' targets."""
    spec = state.specs[verdict.key]
    if not scale.selector:
        verdict.events += (events.EventNote(events.WARNING, "SelectorRequired", "selector is required"),)
        verdict.error = "selector is required"
        _uncomputed(verdict, spec, say.SELECTOR_MISSING)
        return False
    claimants = state.table.members.claimants(verdict.key)
    if len(claimants) > 1:
        names = " ".join(f"{namespace}/{name}" for namespace, name in claimants)
        text = f"pods by selector {scale.selector} are controlled by multiple HPAs: [{names}]"
        verdict.events += (events.EventNote(events.WARNING, "AmbiguousSelector", text),)
        verdict.error = text
        _uncomputed(verdict, spec, say.not_active("AmbiguousSelector", text))
        return False
    return True


def _uncomputed(verdict: Verdict, spec: Autoscaler, note: say.Note) -> None:
    verdict.stage = "uncomputed"
    verdict.notes += (note,)
    verdict.late_events = (events.metrics_failed(verdict.error),)
    verdict.error = (
        "failed to compute desired number of replicas based on listed metrics for "
        f"{spec.reference}: {verdict.error}"
    )
    verdict.error_label = "internal"


# ── from the proposal to the number ─────────────────────────────────────────────────────────────


def why_of(metric: str, proposal: int, current: int) -> str:
    """Return what the event of a rescale says; it looks at the proposal, before stabilization and limits."""
    if proposal == current:
        return ""
    return f"{metric} above target" if proposal > current else events.ALL_BELOW_TARGET


def _normalize(
    verdict: Verdict,
    spec: Autoscaler,
    proposal: int,
    state: State,
    now: Instant,
) -> None:
    """Stabilizes the proposal and holds it within its limits."""
    current = verdict.current
    held = stabilized_of(spec, state, proposal, current, now)
    limited = limit_of(spec, state, held.replicas, current, now)
    verdict.notes += (
        able_of(spec, proposal, current, held=held.replicas),
        say.scaling_limited(limited.reason, limited=limited.replicas != held.replicas),
    )
    verdict.raw, verdict.slot, verdict.stabilized = proposal, held.slot, held.replicas
    verdict.desired, verdict.limit = limited.replicas, limited.reason
    if state.holds:
        verdict.hold()
    if current == 0 and verdict.desired < spec.minimum:
        verdict.desired = spec.minimum
        # A metric that asks for replicas, too few though, is the reason that it was before.
        verdict.why = verdict.why or events.BELOW_MINIMUM


def able_of(spec: Autoscaler, proposal: int, current: int, *, held: int) -> say.Note:
    """Return whether recent recommendations hold the proposal back, and in which direction."""
    if held == proposal:
        return say.READY_FOR_NEW_SCALE
    if spec.up is not None and proposal >= current:
        return say.SCALE_UP_STABILIZED
    return say.SCALE_DOWN_STABILIZED


def stabilized_of(spec: Autoscaler, state: State, proposal: int, current: int, now: Instant) -> Stabilized:
    """Hold a proposal back by what is remembered; at first that is the number of replicas found."""
    remembered = state.recommendations.of(spec.key) or [Recommendation(now, current)]
    if spec.up is None or spec.down is None:
        return stabilize(remembered, proposal, window=spec.window, now=now)
    return stabilize_both_ways(remembered, proposal, current, up=spec.up, down=spec.down, now=now)


def limit_of(spec: Autoscaler, state: State, held: int, current: int, now: Instant) -> Limited:
    """Hold a stabilized number within policies and bounds."""
    if spec.up is None or spec.down is None:
        return limit_plainly(held, current, minimum=spec.minimum, maximum=spec.maximum)
    known = state.events.get(spec.key, _NO_EVENTS)
    return limit_by_rules(
        held,
        current,
        minimum=spec.minimum,
        maximum=spec.maximum,
        up=spec.up,
        down=spec.down,
        ups=known.ups,
        downs=known.downs,
        now=now,
    )
