"""Replicas for forecast load (flag or annotation ``forecast``).

The HPA's own number stays as it is; the forecast only adds: what is decided is the larger of both. With ``calendar``
two more things change, both upwards: a load behind a CPU limit counts 1.25 times, as nobody sees how much more there
would be, and scale-downs have a long window besides (``rules.windows``). ``strict`` leaves these out.
"""

from __future__ import annotations

from math import ceil, isfinite
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kubetide.forecast.headroom import LEAST_PODS, LEAST_STEPS, HeadroomScore, within
from kubetide.forecast.long_window import LONG
from kubetide.forecast.rows import NOTHING, Ahead, Seen
from kubetide.horizontal.decision import Grounds, Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import PodView, ScaleView
from kubetide.horizontal.metrics.types import Known, Metric, MetricFailure, Proposal, Reading, Tally
from kubetide.horizontal.options.annotations import ALL, CALENDAR, OUT
from kubetide.horizontal.rules.bounds import metrics_decide
from kubetide.horizontal.rules.limits import Limited
from kubetide.horizontal.rules.metric_facts import pods_of
from kubetide.objects.meta import Key
from kubetide.plan.board import Intent, Workload, percentile_95
from kubetide.units.time import Duration, Instant, after, format_duration, format_rfc3339, hours, minutes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubetide.horizontal.state import State

SOURCE: Final = "forecast"
"""Who announces on the board."""

OF_HPA: Final = "schedules of the HPA"
"""Who announces the coming bounds of an HPA as those of its target."""

FULL: Final = 0.7
"""The share of what a pod can do that a target which is no utilization is taken to be."""

HELD: Final = minutes(5)
"""Nodes are held for so long after the time of a forecast onset."""

SATURATED: Final = 0.98
"""Pods that use so much of their CPU limits hide what they are asked for beyond; ..."""

BEYOND: Final = 1.25
"""... it counts so many times."""


class Load:
    """The load of a workload at a tick.

    Attributes:
        pods: In pods at full use: such as would use all that they request.
        proposed: Replicas that the metric asks for, unrounded.
        saturated: Whether CPU limits hide how much more there is.
    """

    __slots__ = ("pods", "proposed", "saturated")

    def __init__(self, pods: float, proposed: float, *, saturated: bool) -> None:
        self.pods, self.proposed, self.saturated = pods, proposed, saturated


def load_of(state: State, spec: Autoscaler, scale: ScaleView, grounds: Grounds) -> Load | None:
    """Return the largest load over the metrics; None if no metric has one."""
    best: Load | None = None
    for metric, found, known in zip(spec.metrics, *grounds, strict=True):
        one = _load(metric, found, known)
        if one is None or not isfinite(one[1]):
            continue
        if best is None or one[1] > best.proposed:
            best = Load(*one, saturated=_is_saturated(state, spec, scale, metric, known))
    return best


def _load(metric: Metric, found: Proposal | MetricFailure, known: Known) -> tuple[float, float] | None:
    """Return the load in pods at full use, and in replicas at their target."""
    if isinstance(found, MetricFailure) or isinstance(known, str):
        return None
    if isinstance(known, Tally):
        if metric.utilization is not None:
            if known.requests <= 0:
                return None
            full = known.matched_usage / known.requests * known.matched
            return full, full * 100.0 / max(metric.utilization, 1)
        target = metric.average_milli or 0
        proposed = known.usage / target if target > 0 else 0.0
        return FULL * proposed, proposed
    assert isinstance(known, Reading)
    if metric.average_milli:
        proposed = sum(known.series) / metric.average_milli
    else:
        proposed = found.arithmetic.ratio * known.ready
    return FULL * proposed, proposed


def _is_saturated(state: State, spec: Autoscaler, scale: ScaleView, metric: Metric, known: Known) -> bool:
    if not isinstance(known, Tally) or metric.resource != "cpu" or not known.matched:
        return False
    limits = [pod.cpu_limit for pod in pods_of(state, spec, scale) if not pod.deleting]
    if not limits or None in limits:
        return False
    least = min(limit for limit in limits if limit is not None)
    return known.matched_usage / known.matched >= SATURATED * least


def beyond_saturation(state: State, spec: Autoscaler, load: Load, best: int) -> int:
    """Return the proposal with the load that CPU limits hide, never less than ``best``."""
    if spec.options.forecast != CALENDAR or not load.saturated:
        return best
    if not state.forecasts.may_boost(spec.key):
        return best
    most = state.forecasts.most_of_day(spec.key)
    share = load.pods / load.proposed if load.proposed > 0 else FULL
    target = load.proposed * BEYOND
    if most > 0:
        target = min(target, most / share)
    return max(best, ceil(target - 1e-6))


def with_headroom(state: State, spec: Autoscaler, load: Load, proposed: int, current: int) -> int | None:
    """Return the proposal by the headroom learned from this load's forecast errors; None if it is not used.

    At the CPU limit the load is not known, with several metrics another one may ask for more, and few pods are left to
    the target: all of these are up to the HPA's own formula.
    """
    capacity = state.forecasts.capacity(spec.key)
    if capacity is None or spec.options.forecast != CALENDAR or len(spec.metrics) != 1:
        return None
    if load.saturated or load.proposed <= 0 or load.pods < LEAST_PODS * (share := load.pods / load.proposed):
        return None
    pods = ceil(float(within(capacity, load.pods, share)) - 1e-6)
    # Upwards half of the tolerance, as all of it would use up the learned headroom.
    if current and 1.0 - spec.tolerance.down <= pods / current <= 1.0 + spec.tolerance.up / 2:
        pods = current
    return None if pods == proposed else pods


def share_of(spec: Autoscaler) -> float:
    """Return the target of an HPA with one metric as a share of full use; 0 if no headroom may be learned for it."""
    if spec.options.forecast != CALENDAR or len(spec.metrics) != 1:
        return 0.0
    target = spec.metrics[0].utilization
    return FULL if target is None else min(target, 100) / 100


def is_rolling(pods: Sequence[PodView]) -> bool:
    """Return whether pods of two ReplicaSets exist at the same time."""
    owners = {pod.owner for pod in pods if not pod.deleting and pod.owner.startswith("ReplicaSet/")}
    return len(owners) > 1


def raised(
    state: State,
    spec: Autoscaler,
    desired: int,
    current: int,
    now: Instant,
    limit: Callable[[int], Limited],
) -> tuple[int, Ahead]:
    """Return the desired replicas with the forecast, within the HPA's own limits, and the forecast."""
    ahead = state.forecasts.ahead(spec.key, now)
    if not ahead.pods:
        return desired, NOTHING
    if ahead.pods <= desired:
        return desired, ahead
    if ahead.pods <= current:
        return ahead.pods, ahead
    return max(desired, limit(ahead.pods).replicas), ahead


def why_of(ahead: Ahead) -> str:
    """Return the text for the event of a rescale."""
    return f"load forecast for {format_rfc3339(ahead.at)}"


def intents(state: State, now: Instant, kind_of: Callable[[Autoscaler], str]) -> list[Intent]:
    """Return the replicas that nodes must be ready for, with due times, in order of workload.

    An HPA that does not scale out asks for none.

    Args:
        kind_of: Returns the kind of an HPA's target as the cluster writes it.
    """
    found = []
    for key in sorted(state.forecasts.keys()):
        spec, ahead = state.specs.get(key), state.forecasts.ahead(key, now)
        if spec is None or not ahead.nodes or not _scales_out(state, spec):
            continue
        workload = Workload(key[0], kind_of(spec), spec.target)
        replicas = min(ahead.nodes, spec.maximum)
        why = (
            f"forecast by {ahead.by}"
            if ahead.by
            else (
                "the load before the outage"
                if ahead.outage
                else f"an onset comes again every {format_duration(ahead.period)}"
            )
        )
        until = ahead.nodes_at if ahead.outage else after(ahead.nodes_at, HELD)
        start = pod_start(state, key)
        found.append(Intent(workload, replicas, ahead.nodes_at, SOURCE, until, start, why))
    return found


def pod_start(state: State, key: Key) -> Duration | None:
    """Return the time within which 95 % of the target's pods became ready; None if none is ready."""
    pods = (state.table.view(row) for row in state.table.members_of(key).tolist())
    times = [pod.ready_since - pod.started for pod in pods if pod.ready == "True" and pod.started is not None]
    return percentile_95([max(0, one) for one in times]) if times else None


def of_targets(state: State, intents: Sequence[Intent], kind_of: Callable[[Autoscaler], str]) -> list[Intent]:
    """Return intents about HPAs as intents about their targets; ``kind_of`` as in ``intents``.

    Those of bounds are left out for an HPA that does not scale out.
    """
    found = []
    for intent in intents:
        if intent.workload.kind != "HorizontalPodAutoscaler":
            continue
        key = intent.workload.namespace, intent.workload.name
        spec = state.specs.get(key)
        if spec is None or not (intent.sizes or _scales_out(state, spec)):
            continue
        workload = Workload(key[0], kind_of(spec), spec.target)
        found.append(replace(intent, workload=workload, source=OF_HPA, start=pod_start(state, key)))
    return found


def _scales_out(state: State, spec: Autoscaler) -> bool:
    """Return whether the HPA can ask for more pods."""
    return not _why_not_out(state, spec)


def _why_not_out(state: State, spec: Autoscaler) -> str:
    """Return why the HPA asks for no more pods whatever the load: a pause, or a target that is off; empty if it may."""
    if spec.options.pause in (ALL, OUT):
        return "scaling out is paused"
    scale = state.scales.get(spec.key)
    is_off = scale is not None and not scale.error and scale.spec_replicas == 0
    return "its target is at 0 replicas" if is_off and not metrics_decide(state, spec, 0) else ""


def foreseen(state: State, now: Instant, ahead: Duration) -> list[tuple[Key, Ahead, tuple[str, str]]]:
    """Return the forecast onsets from now on, each with its text and reason."""
    found = []
    for key in sorted(state.forecasts.keys()):
        spec = state.specs.get(key)
        for one in state.forecasts.coming(key, now, ahead):
            text = f"{one.load:.1f} pods' worth of load forecast; {_held(state, spec, one)}"
            score = state.forecasts.score(key)
            why = f"an onset comes again every {format_duration(one.period)}; {score.hits} of {score.hits + score.misses} came true"
            found.append((key, one, (text, why)))
    return found


def _held(state: State, spec: Autoscaler | None, onset: Ahead) -> str:
    """Return how many pods are held for a forecast onset, or why none are."""
    refusal = "" if spec is None else _why_not_out(state, spec)
    if refusal:
        return f"no pods are held for it, as {refusal}"
    said = f"pods are held from {_lead(state)} before"
    if spec is not None and spec.maximum < onset.pods:
        return f"{spec.maximum} {said}, as maxReplicas allows no more"
    return f"{onset.pods} {said}"


def score_lines(state: State, key: Key, now: Instant) -> list[str]:
    """Return lines about an HPA's forecasts: their score, their cost, the next ones."""
    if key not in state.forecasts:
        return []
    score = state.forecasts.score(key)
    scored = score.hits + score.misses
    lines = [
        f"forecast: {score.hits} of {scored} forecast onsets came true; {score.pod_minutes:.0f} pod-minutes were held beyond what the load asked for"
    ]
    limit, asked = state.forecasts.limit(key), state.specs.get(key)
    if not limit.hides_more and asked is not None and asked.options.forecast == CALENDAR:
        lines.append(
            f"forecast: a load at the CPU limit counts as it is: only {limit.hits:.1f} of {limit.trials:.1f} times was it still as "
            "high when the pods had caught up"
        )
    if asked is not None and asked.may_hold_longer and not state.forecasts.holds_longer(key):
        why = (
            "has cost more than the budget" if state.forecasts.long_window_pays(key) else "was seldom needed"
        )
        lines.append(f"forecast: scale-downs have no window of {format_duration(LONG)}: what it held {why}")
    learned = state.forecasts.headroom_score(key)
    if learned is not None:
        lines.append(f"forecast: {_of_headroom(learned)}")
    if state.forecasts.second is not None and state.forecasts.second.problem:
        lines.append(f"forecast: {state.forecasts.second.problem}")
    coming = state.forecasts.coming(key, now, hours(1))
    lines += [
        f"forecast: {one.load:.1f} pods' worth of load at {format_rfc3339(one.at)}, as an onset comes again every {format_duration(one.period)}"
        for one in coming
    ]
    return lines


def _of_headroom(score: HeadroomScore) -> str:
    """Return what is said of the back-test of learned headroom."""
    if score.steps < LEAST_STEPS:
        return f"headroom is being learned from {score.steps} minutes; it is used after {LEAST_STEPS} at the earliest"
    used = "is used" if score.used else "is refused"
    share = 100 * score.pods / max(score.plain_pods, 1e-6)
    return (
        f"learned headroom {used}: on this load's last days it would have had {share:.0f} % of the target's pods, and "
        f"{score.short:.1f} minutes short of pods in the place of {score.plain_short:.1f}"
    )


def _lead(state: State) -> str:
    calendar = state.forecasts.calendar
    return format_duration(Duration(calendar.lengths.pods_before * calendar.step))


def learn(state: State, verdicts: Sequence[Verdict], now: Instant) -> None:
    """Feed this tick's load of workloads with forecasts to the forecaster."""
    if not len(state.forecasts):
        return
    seen = []
    for verdict in verdicts:
        if verdict.key not in state.forecasts or verdict.stage == "waiting":
            continue
        spec = state.specs[verdict.key]
        counts_more = verdict.saturated and spec.options.forecast == CALENDAR
        beyond = BEYOND if counts_more and state.forecasts.may_boost(verdict.key) else 1.0
        reactive = verdict.desired if verdict.reactive is None else verdict.reactive
        share = share_of(spec)
        one = Seen(verdict.load, verdict.desired, reactive, verdict.rolling, verdict.saturated, beyond, share)
        seen.append((verdict.key, one))
    state.forecasts.take(seen, now)
