"""Explains one HPA at a time: from the pods to the number, with every number on the way.

The HPA is decided about again, from the same state and by the same functions; nothing is kept for
the purpose. To explain a tick of a record, apply its state and ask before ``absorb``.
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decide import judge
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.grouping import CLASS_NAMES, classify
from kubetide.horizontal.limits import down_limit, up_limit
from kubetide.horizontal.memory import ScaleEvents
from kubetide.horizontal.metrics.types import Metric, MetricFailure, Proposal, Tally
from kubetide.horizontal.reasons import VOCABULARY, WANTED, reasons_of
from kubetide.horizontal.specs import Autoscaler, Policy, Rules
from kubetide.horizontal.state import State
from kubetide.horizontal.views import Key
from kubetide.units.quantity import milli_to_text
from kubetide.units.time import Instant, format_duration, format_rfc3339


class MetricExplanation(msgspec.Struct, frozen=True):
    """One metric: what it saw and what it asks for.

    Attributes:
        target: As in the spec, ``80%`` or ``250m``.
        value: The same for what was measured; empty when the metric failed.
        tolerance: The ratios within which the number stays, inclusive.
        ratio: Value over target; ``filled_ratio`` with missing and unready pods filled in, if any were.
        pods: Names by class: ready, unready, missing, ignored.
        proposed: Replicas; None when the metric failed, then ``problem`` says why.
    """

    name: str
    target: str
    value: str
    tolerance: tuple[float, float]
    ratio: float | None
    filled_ratio: float | None
    pods: dict[str, tuple[str, ...]]
    proposed: int | None
    problem: str


class HpaExplanation(msgspec.Struct, frozen=True):
    """One HPA at one time.

    Attributes:
        current: ``spec.replicas`` of the target; ``desired`` what the HPA wants.
        metrics: In the order of the spec; empty when metrics were not asked.
        proposal: The largest proposal.
        windows: The stabilization windows, in words.
        recommendations: The remembered ones, newest first: time and replicas.
        stabilized: The proposal after stabilization.
        policies: What each policy allows now, in words.
        limit: The reason of ``ScalingLimited``.
        reasons: The verdict's reasons.
    """

    namespace: str
    name: str
    at: Instant
    target: str
    minimum: int
    maximum: int
    current: int
    desired: int
    metrics: tuple[MetricExplanation, ...]
    proposal: int | None
    windows: tuple[str, ...]
    recommendations: tuple[tuple[str, int], ...]
    stabilized: int | None
    policies: tuple[str, ...]
    limit: str
    reasons: tuple[Reason, ...]

    def lines(self) -> list[str]:
        """Gives the explanation as text, in the order of the algorithm."""
        lines = [
            f"{self.namespace}/{self.name} at {format_rfc3339(self.at)}: {self.target}, {self.current} replicas, bounds {self.minimum} to {self.maximum}"
        ]
        for metric in self.metrics:
            lines += _metric_lines(metric)
        if self.proposal is not None:
            lines.append(f"largest proposal: {self.proposal}")
            lines += [f"  {window}" for window in self.windows]
            lines.append(f"  recommendations, newest first: {_in_runs(self.recommendations) or 'none'}")
            lines.append(f"after stabilization: {self.stabilized}")
            lines += [f"  {policy}" for policy in self.policies]
            lines.append(f"after limits: {self.desired} ({self.limit})")
        lines += [VOCABULARY.text(reason) for reason in self.reasons]
        return lines


def explain(state: State, key: Key, now: Instant) -> HpaExplanation:
    """Explains what the loop decides about an HPA.

    Raises: KeyError when there is no such HPA.
    """
    if key not in state.specs:
        raise KeyError(f"there is no HPA {key[0]}/{key[1]}")
    spec = state.specs[key]
    verdict = judge(state, key, now)
    events = state.events.get(key, ScaleEvents())
    settled = Settlement(
        verdict=verdict,
        status=state.statuses[key],
        changes={},
        events=(),
        late_events=(),
        action=WANTED if verdict.rescale else "none",
        error=verdict.error,
    )
    newest_first = sorted(state.recommendations.of(key), key=lambda old: (-old.at, old.replicas))
    return HpaExplanation(
        namespace=key[0],
        name=key[1],
        at=now,
        target=spec.reference,
        minimum=spec.minimum,
        maximum=spec.maximum,
        current=verdict.current,
        desired=verdict.desired,
        metrics=_metrics(state, spec, verdict, now),
        proposal=verdict.raw,
        windows=_windows(state, spec),
        recommendations=tuple((format_rfc3339(Instant(old.at)), old.replicas) for old in newest_first),
        stabilized=verdict.stabilized,
        policies=_policies(spec, events, verdict, now),
        limit=verdict.limit,
        reasons=reasons_of(settled, minimum=spec.minimum, maximum=spec.maximum),
    )


def _metrics(state: State, spec: Autoscaler, verdict: Verdict, now: Instant) -> tuple[MetricExplanation, ...]:
    if verdict.grounds is None:
        return ()
    asked = zip(spec.metrics, *verdict.grounds(), strict=True)
    return tuple(_metric(state, spec, metric, found, tally, now) for metric, found, tally in asked)


def _metric(
    state: State,
    spec: Autoscaler,
    metric: Metric,
    found: Proposal | MetricFailure,
    tally: Tally | str,
    now: Instant,
) -> MetricExplanation:
    tolerance = 1.0 - spec.tolerance.down, 1.0 + spec.tolerance.up
    if metric.utilization is not None:
        target = f"{metric.utilization}%"
    else:
        target = "" if metric.average_milli is None else milli_to_text(metric.average_milli)
    pods = {} if isinstance(tally, str) else _pods_by_class(state, spec.key, metric, now)
    if isinstance(found, MetricFailure):
        return MetricExplanation(metric.type, target, "", tolerance, None, None, pods, None, found.text)
    numbers = found.arithmetic
    value = milli_to_text(numbers.average) if numbers.utilization is None else f"{numbers.utilization}%"
    return MetricExplanation(
        found.name, target, value, tolerance, numbers.ratio, numbers.filled_ratio, pods, found.replicas, ""
    )


def _pods_by_class(state: State, key: Key, metric: Metric, now: Instant) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {name: [] for name in reversed(CLASS_NAMES)}
    for row in state.table.members_of(key).tolist():
        pod = state.table.view(row)
        sample = state.samples.sample_at(row, metric.sample_key)
        code = classify(pod, sample, cpu=metric.resource == "cpu", now=now, settings=state.settings)
        found[CLASS_NAMES[code]].append(pod.name)
    return {name: tuple(pods) for name, pods in found.items()}


def _windows(state: State, spec: Autoscaler) -> tuple[str, ...]:
    if spec.up is None or spec.down is None:
        window = format_duration(state.settings.downscale_stabilization)
        return (f"scale-down window {window} (the flag's): the highest recommendation holds",)
    up, down = format_duration(spec.up.window), format_duration(spec.down.window)
    return (
        f"scale-up window {up}: the lowest recommendation holds",
        f"scale-down window {down}: the highest recommendation holds",
    )


def _policies(spec: Autoscaler, events: ScaleEvents, verdict: Verdict, now: Instant) -> tuple[str, ...]:
    """Says what each policy of the direction of travel allows by itself, and what holds."""
    if verdict.stabilized is None or verdict.stabilized == verdict.current:
        return ()
    upwards = verdict.stabilized > verdict.current
    if spec.up is None or spec.down is None:
        return (f"at most double, or 4, at once: {max(2 * verdict.current, 4)}",) if upwards else ()
    rules, limit = (spec.up, up_limit) if upwards else (spec.down, down_limit)
    lines = [
        f"{_in_words(policy)}: "
        + str(limit(verdict.current, Rules(rules.window, "Max", (policy,)), events.ups, events.downs, now))
        for policy in rules.policies
    ]
    together = limit(verdict.current, rules, events.ups, events.downs, now)
    direction = "up" if upwards else "down"
    return (*lines, f"policies {direction} together ({rules.select}): {together}")


def _in_words(policy: Policy) -> str:
    unit = "%" if policy.percent else " pods"
    return f"{policy.value}{unit} in {format_duration(policy.period)}"


def _in_runs(recommendations: tuple[tuple[str, int], ...]) -> str:
    """Puts equal recommendations that follow each other together."""
    runs = []
    for replicas, run in groupby(recommendations, key=lambda one: one[1]):
        times = [at for at, _ in run]
        since = f"{times[0]} back to {times[-1]}" if len(times) > 1 else times[0]
        runs.append(f"{replicas} ({since})")
    return ", ".join(runs)


def _metric_lines(metric: MetricExplanation) -> list[str]:
    counts = ", ".join(f"{len(names)} {name}" for name, names in metric.pods.items())
    if metric.proposed is None:
        return [f"{metric.name}: {metric.problem}", *([f"  pods: {counts}"] if counts else [])]
    filled = "" if metric.filled_ratio is None else f", {metric.filled_ratio:.4g} with pods filled in"
    low, high = metric.tolerance
    ratio = metric.ratio if metric.filled_ratio is None else metric.filled_ratio
    stays = "within tolerance" if ratio is not None and low <= ratio <= high else "outside tolerance"
    lines = [
        f"{metric.name}: {metric.value} of {metric.target}, ratio {metric.ratio:.4g}{filled}, {stays} {low:.4g} to {high:.4g}: {metric.proposed} replicas",
        f"  pods: {counts}",
    ]
    odd = [name for name in ("unready", "missing", "ignored") if metric.pods.get(name)]
    return [*lines, *(f"  {name}: {', '.join(metric.pods[name])}" for name in odd)]
