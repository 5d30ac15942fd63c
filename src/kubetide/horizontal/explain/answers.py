"""Explains one HPA at a time: from the pods to the number, with every intermediate number.

The HPA is decided about again, from the same state and by the same functions; nothing is stored for
the purpose. To explain a tick of a record, apply its state and ask before ``absorb``.
"""

from __future__ import annotations

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.explain.calculation import (
    PROPOSALS,
    proposal_reason,
    short_name,
    target_text,
    value_text,
)
from kubetide.horizontal.explain.counterfactual import WhatIf, what_if_lines, what_ifs
from kubetide.horizontal.explain.headline import headline, holds_of
from kubetide.horizontal.explain.windows import Window, windows_of
from kubetide.horizontal.facts.specs import Autoscaler, Policy, Rules
from kubetide.horizontal.memory import OptionMemory, ScaleEvents
from kubetide.horizontal.metrics.types import Known, Metric, MetricFailure, Proposal, Tally
from kubetide.horizontal.options.flapping import FlapReport, flap_report
from kubetide.horizontal.reasons import (
    CLASS_WORDS,
    PLANNED,
    VOCABULARY,
    reasons_of,
)
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.rules.grouping import CLASS_NAMES, classify
from kubetide.horizontal.rules.limits import down_limit, up_limit
from kubetide.horizontal.rules.metric_facts import pods_of, samples_of
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Duration, Instant, between, format_duration, format_rfc3339

_SHOWN_BEFORE = PROPOSALS | {
    "PodsCounted",
    "MetricFailed",
    "Winner",
    "Stabilized",
    "StabilizedAtStart",
    "Limited",
    "RescalePlanned",
    "NothingToDo",
}
"""Reasons that the lines above them have said already, with more numbers."""


class MetricExplanation(msgspec.Struct, frozen=True):
    """One metric: its value and its proposal.

    Attributes:
        target: As in the spec, ``80%`` or ``250m``.
        value: The same for what was measured; empty when the metric failed.
        working: From the value to the replicas; None when the metric failed.
        tolerance: The ratios within which the number stays, inclusive.
        ratio: Value over target; ``filled_ratio`` with missing and unready pods filled in, if any were.
        pods: Names by class: ready, unready, missing, ignored; empty for metrics of other things.
        unplaced: Those of the unready that are Pending without a start time, which no node has taken.
        proposed: Replicas; None when the metric failed, then ``problem`` says why.
        age: Of the oldest value, where its source says when it was measured.
    """

    name: str
    target: str
    value: str
    working: Reason | None
    tolerance: tuple[float, float]
    ratio: float | None
    filled_ratio: float | None
    pods: dict[str, tuple[str, ...]]
    unplaced: tuple[str, ...]
    proposed: int | None
    problem: str
    age: Duration | None = None


class HpaExplanation(msgspec.Struct, frozen=True):
    """One HPA at one time.

    Attributes:
        answer: What it has and wants, what holds it back and until when, in one line.
        holds: What makes another number of the largest proposal, and until when.
        current: ``spec.replicas`` of the target; ``desired`` what the HPA wants, the same where it cannot tell.
        metrics: In the order of the spec; empty when metrics were not asked.
        proposal: The largest proposal.
        windows: The stabilization windows, each with what it remembers.
        stabilized: The proposal after stabilization.
        policies: What each policy allows now, in words.
        limited: After policies and bounds, before a pause; ``limit`` the reason of ``ScalingLimited``.
        flapping: Changes and reversals of the last hour; None where no annotation asks for them.
        what_ifs: What would have been decided without one of the rules.
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
    windows: tuple[Window, ...]
    stabilized: int | None
    policies: tuple[str, ...]
    limited: int
    limit: str
    flapping: FlapReport | None
    what_ifs: tuple[WhatIf, ...]
    reasons: tuple[Reason, ...]
    holds: tuple[str, ...]
    answer: str

    def lines(self) -> list[str]:
        """Return the explanation as text: the answer, then the way to it in the order of the algorithm."""
        lines = [
            f"{self.namespace}/{self.name} at {format_rfc3339(self.at)}: {self.target}, {self.current} replicas, bounds {self.minimum} to {self.maximum}",
            self.answer,
        ]
        for metric in self.metrics:
            lines += _metric_lines(metric)
        if self.proposal is not None:
            lines.append(f"largest proposal: {self.proposal}{self._winner()}")
            for window in self.windows:
                before = ", ".join(map(str, window.remembered)) or "none before this tick's"
                lines += [f"  {window.text}", f"    recommendations, newest first: {before}"]
            lines.append(f"after stabilization: {self.stabilized}")
            lines += [f"  {policy}" for policy in self.policies]
            bounds = f"bounds {self.minimum} to {self.maximum}"
            lines.append(f"after limits, {bounds}: {self.limited} ({self.limit})")
            lines += what_if_lines(self.what_ifs, self.limited)
        if self.flapping is not None:
            changes, reversals = self.flapping
            lines.append(f"changes in the last hour: {changes}, of these against the one before: {reversals}")
        more = [VOCABULARY.text(reason) for reason in self.reasons if reason.code not in _SHOWN_BEFORE]
        return lines + [text for text in more if text not in self.answer]

    def _winner(self) -> str:
        """Name the metric that made it where there are several."""
        if len(self.metrics) < 2:
            return ""
        names = [metric.name for metric in self.metrics if metric.proposed == self.proposal]
        return f" ({names[0]})" if names else ""


def explain(state: State, key: Key, now: Instant) -> HpaExplanation:
    """Explain what the loop decides about an HPA.

    Raises: KeyError when there is no such HPA.
    """
    if key not in state.specs:
        raise KeyError(f"there is no HPA {key[0]}/{key[1]}")
    spec = state.specs[key]
    verdict = evaluate(state, key, now)
    events = state.events.get(key, ScaleEvents())
    settled = Settlement(
        verdict=verdict,
        status=state.statuses[key],
        changes=(),
        events=(),
        late_events=(),
        action=PLANNED if verdict.rescale else "none",
        error=verdict.error,
    )
    metrics = _metrics(state, spec, verdict, now)
    windows = () if verdict.raw is None else windows_of(state, spec, verdict, now)
    reasons = reasons_of(settled, spec, state.holds)
    holds = holds_of(spec, verdict, windows, events, reasons, now)
    return HpaExplanation(
        namespace=key[0],
        name=key[1],
        at=now,
        target=spec.reference,
        minimum=spec.minimum,
        maximum=spec.maximum,
        current=verdict.current,
        # Without a decision the number stays.
        desired=verdict.desired if verdict.stage == "decided" else verdict.current,
        metrics=metrics,
        proposal=verdict.raw,
        windows=windows,
        stabilized=verdict.stabilized,
        policies=_policies(spec, events, verdict, now),
        limited=verdict.limited,
        limit=verdict.limit,
        flapping=_flapping(state, spec, now),
        what_ifs=what_ifs(state, spec, verdict, now),
        reasons=reasons,
        holds=holds,
        answer=headline(verdict, metrics, holds, reasons),
    )


def _flapping(state: State, spec: Autoscaler, now: Instant) -> FlapReport | None:
    if not spec.options.flap_report:
        return None
    return flap_report(state.options.get(spec.key, OptionMemory()).changes, now)


def _metrics(state: State, spec: Autoscaler, verdict: Verdict, now: Instant) -> tuple[MetricExplanation, ...]:
    if verdict.grounds is None:
        return ()
    asked = zip(spec.metrics, *verdict.grounds(), strict=True)
    return tuple(
        msgspec.structs.replace(
            _metric(state, spec, metric, found, known, verdict.current, now),
            age=_age(state, spec, metric, now),
        )
        for metric, found, known in asked
    )


def _age(state: State, spec: Autoscaler, metric: Metric, now: Instant) -> Duration | None:
    question = metric.question(state.scales[spec.key].selector)
    reply = state.values.get(question) if question else None
    return between(Instant(reply.measured), now) if reply is not None and reply.measured > 0 else None


def _metric(
    state: State,
    spec: Autoscaler,
    metric: Metric,
    found: Proposal | MetricFailure,
    known: Known,
    current: int,
    now: Instant,
) -> MetricExplanation:
    tolerance = 1.0 - spec.tolerance.down, 1.0 + spec.tolerance.up
    name, target = short_name(metric), target_text(metric)
    pods = _pods_by_class(state, spec, metric, now) if isinstance(known, Tally) else {}
    unplaced = tuple(pod for pod in pods.get("unready", ()) if _is_unplaced(state, (spec.key[0], pod)))
    if isinstance(found, MetricFailure):
        return MetricExplanation(
            name, target, "", None, tolerance, None, None, pods, unplaced, None, found.text
        )
    numbers = found.arithmetic
    return MetricExplanation(
        name=name,
        target=target,
        value=value_text(found),
        working=proposal_reason(
            metric, found, known, spec.tolerance, current, "/".join(spec.key), VOCABULARY
        ),
        tolerance=tolerance,
        ratio=numbers.ratio,
        filled_ratio=numbers.filled_ratio,
        pods=pods,
        unplaced=unplaced,
        proposed=found.replicas,
        problem="",
    )


def _is_unplaced(state: State, key: Key) -> bool:
    """A kubelet gives a pod its start time as soon as it sees the pod on its node (Pod API, status.startTime)."""
    pod = state.table.view(state.table.rows[key])
    return pod.phase == "Pending" and pod.started is None


def _pods_by_class(
    state: State, spec: Autoscaler, metric: Metric, now: Instant
) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {name: [] for name in reversed(CLASS_NAMES)}
    scale = state.scales[spec.key]
    samples = samples_of(state, spec, metric, scale)
    for pod in pods_of(state, spec, scale):
        sample = samples.get(pod.name)
        code = classify(pod, sample, cpu=metric.resource == "cpu", now=now, settings=state.settings)
        found[CLASS_NAMES[code]].append(pod.name)
    return {name: tuple(pods) for name, pods in found.items()}


def _policies(spec: Autoscaler, events: ScaleEvents, verdict: Verdict, now: Instant) -> tuple[str, ...]:
    """Say what each policy of the direction of travel allows by itself, and what holds."""
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


def _metric_lines(metric: MetricExplanation) -> list[str]:
    opening = VOCABULARY.text(metric.working) if metric.working else f"{metric.name}: {metric.problem}"
    if metric.age is not None:
        opening += f" (measured {format_duration(metric.age)} before)"
    return [opening, *(_pod_lines(metric) if metric.pods else ())]


def _pod_lines(metric: MetricExplanation) -> list[str]:
    """Count the pods by class, and names those that do not count in full."""
    everyone = sum(len(names) for names in metric.pods.values())
    counts = [f"{len(metric.pods['ready'])} of {everyone} count"]
    lines = []
    for name, words in CLASS_WORDS.items():
        pods = metric.pods[name]
        if not pods:
            continue
        unplaced = metric.unplaced if name == "unready" else ()
        of_these = f" (of these {len(unplaced)} without a node)" if unplaced else ""
        counts.append(f"{len(pods)} {words}{of_these}")
        placed = [pod for pod in pods if pod not in unplaced]
        if placed:
            lines.append(f"  {words}: {', '.join(placed)}")
        if unplaced:
            lines.append(f"  {words}, without a node: {', '.join(unplaced)}")
    return [f"  pods: {', '.join(counts)}", *lines]
