"""The decision about one HPA: from its scale and metric facts to a verdict.

What each step does and where it stands is in ``decide``.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kubetide.forecast.rows import NOTHING, Ahead
from kubetide.horizontal.decision import Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.memory import OptionMemory, ScaleEvents
from kubetide.horizontal.metrics.types import Tally
from kubetide.horizontal.options.deletion_cost import costs_of_idlest
from kubetide.horizontal.options.emptiest_node import costs_of_emptiest
from kubetide.horizontal.options.forecasting import (
    beyond_saturation,
    is_rolling,
    load_of,
    raised,
    with_headroom,
)
from kubetide.horizontal.options.forecasting import why_of as why_forecast
from kubetide.horizontal.options.named import Situation, adjusted, named_options
from kubetide.horizontal.options.pause import unpaused
from kubetide.horizontal.options.until_ready import held_until_ready
from kubetide.horizontal.rules.ambiguous_selectors import selector_problem
from kubetide.horizontal.rules.bounds import metrics_decide
from kubetide.horizontal.rules.limits import Limited, limit_by_rules, limit_plainly
from kubetide.horizontal.rules.metric_facts import pods_of, samples_of
from kubetide.horizontal.rules.metric_results import (
    Measured,
    Problem,
    Proposed,
    inactive,
    measure,
    proposed_by,
)
from kubetide.horizontal.rules.waiting import is_waiting
from kubetide.horizontal.rules.windows import stabilized_of
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say
from kubetide.horizontal.status import events
from kubetide.objects.meta import Key
from kubetide.units.time import Instant

_ERROR_OF_STAGE = {
    "version": "invalid API version in scale target reference: {error}",
    "resource": "unable to determine resource for scale target reference: {error}",
    "query": "failed to query scale subresource for {reference}: {error}",
}
_NO_EVENTS = ScaleEvents()
_NO_MEMORY = OptionMemory()


class Number(msgspec.Struct, frozen=True):
    """The desired replicas, and how they were computed: fields of ``Verdict``."""

    desired: int
    why: str = ""
    notes: tuple[say.Note, ...] = ()
    forget_zero: bool = False
    raw: int | None = None
    slot: int = -1
    stabilized: int | None = None
    limit: str = ""
    fallback: bool = False
    held_back: int | None = None
    unready: int | None = None
    ready: int = 0
    unpaused: int | None = None
    unadjusted: int | None = None
    adjusted: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()
    load: float | None = None
    saturated: bool = False
    rolling: bool = False
    beyond: int | None = None
    headroom: int | None = None
    reactive: int | None = None
    ahead: Ahead = NOTHING


def evaluate(state: State, key: Key, now: Instant) -> Verdict:
    """Return the verdict on one HPA; of one that is not due, that it waits."""
    if is_waiting(state, key, now):
        scale = state.scales.get(key)
        return Verdict(key, scale.spec_replicas if scale else 0, stage="waiting")
    return evaluate_as_due(state, key, now)


def evaluate_as_due(state: State, key: Key, now: Instant) -> Verdict:
    """Return the verdict on one HPA, whether it is due or not."""
    spec, scale = state.specs[key], state.scales.get(key)
    if scale is None or scale.error:
        return _unread(spec, scale)
    if spec.minimum > spec.maximum:
        return _uncomputed(spec, scale, _crossed_bounds(spec), None, first=False)
    current, first = scale.spec_replicas, not state.recommendations.has(key)
    measured: Measured | None = None
    number: Number | Problem | None = _outside_bounds(state, spec, current)
    if number is None:
        number = selector_problem(state, spec, scale)
    if number is None:
        measured = measure(state, spec, scale, now)
        found = proposed_by(measured, state, spec, current)
        if isinstance(found, Proposed) and spec.options.forecasts:
            found = _with_load(found, measured, state, spec, scale)
        number = found if isinstance(found, Problem) else _normalized(found, spec, state, current, now)
        if isinstance(number, Number) and spec.options.forecasts and current:
            number = _look_ahead(number, state, spec, current, now)
    if isinstance(number, Problem):
        return _uncomputed(spec, scale, number, measured, first=first)
    if spec.options.hold_until_ready and measured is not None and number.desired < current:
        number = _wait_for_ready(number, measured, state, spec, scale, now)
    if spec.options.named:
        number = _adjust(number, spec, state, current, now)
    if spec.options.pause:
        number = _pause(number, spec.options.pause, current)
    leaving = current - number.desired
    error = measured.error if measured else ""
    return Verdict(
        key,
        current,
        number.desired,
        number.desired != current,
        number.why,
        (say.GOT_SCALE, *number.notes),
        _warnings(spec, measured, number.problems),
        metrics=measured.statuses if measured else None,
        computations=measured.computations if measured else (),
        error=error,
        error_label="internal" if error else "none",
        first=first,
        raw=number.raw,
        slot=number.slot,
        forget_zero=number.forget_zero,
        grounds=measured.grounds if measured else None,
        stabilized=number.stabilized,
        limit=number.limit,
        fallback=number.fallback,
        unpaused=number.unpaused,
        unready=number.unready,
        ready=number.ready,
        unadjusted=number.unadjusted,
        adjusted=number.adjusted,
        costs=_costs(state, spec, scale, leaving=leaving) if leaving > 0 else (),
        held_back=number.held_back,
        load=number.load,
        saturated=number.saturated,
        rolling=number.rolling,
        beyond=number.beyond,
        headroom=number.headroom,
        reactive=number.reactive,
        ahead=number.ahead,
    )


def _warnings(
    spec: Autoscaler, measured: Measured | None, problems: tuple[str, ...] = ()
) -> tuple[events.EventNote, ...]:
    """Return the events of annotations that cannot be read, of metrics that failed, and of options that did."""
    failures = measured.failures if measured else ()
    if not (failures or problems or spec.options.problems):
        return ()
    annotations = [
        events.EventNote(events.WARNING, "InvalidAnnotation", one) for one in spec.options.problems
    ]
    failed = [events.EventNote(events.WARNING, "OptionFailed", one) for one in problems]
    return (
        *annotations,
        *(events.EventNote(events.WARNING, one.reason, one.text) for one in failures),
        *failed,
    )


# ── no number ───────────────────────────────────────────────────────────────────────────────────


def _unread(spec: Autoscaler, scale: ScaleView | None) -> Verdict:
    error = scale.error if scale else "the scale has not been read"
    stage = scale.error_stage if scale else "query"
    return Verdict(
        spec.key,
        notes=(say.scale_unreadable(error),),
        events=(events.scale_unreadable(error),),
        stage="unread",
        error=_ERROR_OF_STAGE[stage or "query"].format(error=error, reference=spec.reference),
        error_label="spec" if stage == "version" else "internal",
    )


def _uncomputed(
    spec: Autoscaler, scale: ScaleView, problem: Problem, measured: Measured | None, *, first: bool
) -> Verdict:
    what = "failed to compute desired number of replicas based on listed metrics for"
    return Verdict(
        spec.key,
        scale.spec_replicas,
        notes=(say.GOT_SCALE, problem.note),
        events=(*_warnings(spec, measured), *([problem.event] if problem.event else ())),
        late_events=(events.metrics_failed(problem.text),),
        stage="uncomputed",
        metrics=measured.statuses if measured else None,
        computations=measured.computations if measured else (),
        error=f"{what} {spec.reference}: {problem.text}",
        error_label="internal",
        first=first,
        grounds=measured.grounds if measured else None,
    )


def _crossed_bounds(spec: Autoscaler) -> Problem:
    """No number is right. The API refuses such a spec; upstream would scale from one bound to the other for ever."""
    text = (
        f"minReplicas {spec.minimum} is above maxReplicas {spec.maximum}: no number of replicas fulfils both; "
        "lower minReplicas or raise maxReplicas"
    )
    return inactive(say.INVALID_BOUNDS, text)


# ── the number ──────────────────────────────────────────────────────────────────────────────────


def _outside_bounds(state: State, spec: Autoscaler, current: int) -> Number | None:
    """Return the number of a target that is off, or outside its bounds; None where metrics are to be asked."""
    if metrics_decide(state, spec, current):
        return None
    if current == 0:
        forget_zero = not state.settings.scales_from_zero
        return Number(0, notes=(say.SCALING_DISABLED,), forget_zero=forget_zero)
    if current > spec.maximum:
        return Number(spec.maximum, events.ABOVE_MAXIMUM)
    return Number(spec.minimum, events.BELOW_MINIMUM)


def _normalized(found: Proposed, spec: Autoscaler, state: State, current: int, now: Instant) -> Number:
    """Return the proposal, stabilized and held within its limits."""
    held = stabilized_of(spec, state, found.replicas, current, now)
    limited = limit_of(spec, state, held.replicas, current, now)
    desired, held_back = hold(limited.replicas, current, holds=bool(state.holds))
    why = found.why
    if current == 0 and desired < spec.minimum:
        desired = spec.minimum
        # A metric that asks for replicas, too few though, is the reason that it was before.
        why = why or events.BELOW_MINIMUM
    return Number(
        desired,
        why,
        (
            found.note,
            able_of(spec, found.replicas, current, held=held.replicas),
            say.scaling_limited(limited.reason, limited=limited.replicas != held.replicas),
        ),
        raw=found.replicas,
        slot=held.slot,
        stabilized=held.replicas,
        limit=limited.reason,
        fallback=found.fallback,
        held_back=held_back,
        load=found.load,
        saturated=found.saturated,
        rolling=found.rolling,
        beyond=found.beyond,
        headroom=found.headroom,
    )


def _with_load(
    found: Proposed, measured: Measured, state: State, spec: Autoscaler, scale: ScaleView
) -> Proposed:
    """Return the proposal with the load, and with what CPU limits hide of it."""
    load = load_of(state, spec, scale, measured.grounds())
    found = replace(found, rolling=is_rolling(pods_of(state, spec, scale)))
    if load is None:
        return found
    found = replace(found, load=load.pods, saturated=load.saturated)
    learned = None if found.rolling else with_headroom(state, spec, load, found.replicas, scale.spec_replicas)
    if learned is not None:
        why = "learned headroom" if learned != scale.spec_replicas else ""
        return replace(found, replicas=learned, headroom=learned, why=why)
    more = beyond_saturation(state, spec, load, found.replicas)
    if more <= found.replicas:
        return replace(found, replicas=more)
    return replace(found, replicas=more, beyond=more, why="load at the CPU limit")


def _look_ahead(number: Number, state: State, spec: Autoscaler, current: int, now: Instant) -> Number:
    """Return the number raised to what is forecast."""
    desired, ahead = raised(
        state,
        spec,
        number.desired,
        current,
        now,
        lambda desired: limit_of(spec, state, desired, current, now),
    )
    why = why_forecast(ahead) if desired > max(number.desired, current) else number.why
    return replace(number, reactive=number.desired, desired=desired, ahead=ahead, why=why)


def hold(desired: int, current: int, *, holds: bool) -> tuple[int, int | None]:
    """Return the held replicas if a scale-down's input is unreliable, and those without the hold; None if no hold."""
    return (current, desired) if holds and desired < current else (desired, None)


def _wait_for_ready(
    number: Number, measured: Measured, state: State, spec: Autoscaler, scale: ScaleView, now: Instant
) -> Number:
    """Leave the number as it is while pods of the last scale-up are not ready; bounds hold all the same."""
    current, rose_at = scale.spec_replicas, state.options.get(spec.key, _NO_MEMORY).rose_at
    serving = sum(pod.phase == "Running" and pod.ready == "True" for pod in pods_of(state, spec, scale))
    # A pod that serves counts as not ready until its sample is of a time when it was.
    ready = min([serving, *(one.ready for one in measured.known if isinstance(one, Tally))])
    left = held_until_ready(
        number.desired,
        current,
        ready=ready,
        rose_at=None if rose_at is None else Instant(rose_at),
        longest=state.settings.cpu_initialization_period,
        now=now,
    )
    if left == number.desired:
        return number
    note = say.held_until_ready(number.desired, ready, current)
    return replace(number, desired=left, unready=number.desired, ready=ready, notes=(*number.notes, note))


def _pause(number: Number, pause: str, current: int) -> Number:
    """Leave the number as it is where its direction is paused."""
    left = unpaused(pause, current, number.desired)
    if left == number.desired:
        return number
    notes = (*number.notes, say.paused(number.desired))
    return replace(number, desired=left, unpaused=number.desired, notes=notes)


def _adjust(number: Number, spec: Autoscaler, state: State, current: int, now: Instant) -> Number:
    """Return the number as options of other packages leave it; a target that is off stays off, a hold holds."""
    if current == 0:
        return number
    situation = Situation(spec.key, current, number.desired, spec.minimum, spec.maximum, now)
    changes, problems = adjusted(spec.options.named, named_options(state.settings.options), situation)
    number = replace(number, problems=problems)
    if not changes:
        return number
    desired, _ = hold(changes[-1][1], current, holds=bool(state.holds))
    notes = (*number.notes, *(say.adjusted(name, to) for name, to in changes))
    return replace(number, desired=desired, unadjusted=number.desired, adjusted=changes, notes=notes)


def _costs(state: State, spec: Autoscaler, scale: ScaleView, *, leaving: int) -> tuple[tuple[str, int], ...]:
    """Mark the pods whose nodes are emptiest, or that use least of what the first metric of pods measures."""
    if spec.options.emptiest_node_first:
        return costs_of_emptiest(pods_of(state, spec, scale), state.pods_by_node(), leaving)
    if not spec.options.idlest_first:
        return ()
    for metric in spec.metrics:
        samples = samples_of(state, spec, metric, scale)
        if samples:
            usage = {name: sample.milli for name, sample in samples.items()}
            return costs_of_idlest(pods_of(state, spec, scale), usage, leaving)
    return ()


def able_of(spec: Autoscaler, proposal: int, current: int, *, held: int) -> say.Note:
    """Return whether recent recommendations hold the proposal back, and in which direction."""
    if held == proposal:
        return say.READY_FOR_NEW_SCALE
    if spec.up is not None and proposal >= current:
        return say.SCALE_UP_STABILIZED
    return say.SCALE_DOWN_STABILIZED


def limit_of(spec: Autoscaler, state: State, held: int, current: int, now: Instant) -> Limited:
    """Return a stabilized number limited by policies and bounds."""
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
