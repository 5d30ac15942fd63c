"""Explains one HPA at a time: from the pods to the number, with every intermediate number.

The HPA is decided about again, from the same state and by the same functions; nothing is stored for
the purpose. To explain a tick of a record, apply its state and ask before ``absorb``.
"""

from __future__ import annotations

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.explain.calculation import PROPOSALS
from kubetide.horizontal.explain.counterfactual import WhatIf, what_if_lines, what_ifs
from kubetide.horizontal.explain.headline import headline, holds_of
from kubetide.horizontal.explain.metrics import (
    MetricExplanation,
    explain_metrics,
    metric_lines,
    unplaced_pods,
)
from kubetide.horizontal.explain.ways_out import way_out
from kubetide.horizontal.explain.windows import Window, windows_of
from kubetide.horizontal.facts.specs import Autoscaler, Policy, Rules
from kubetide.horizontal.memory import OptionMemory, ScaleEvents
from kubetide.horizontal.options.flapping import FlapReport, flap_report
from kubetide.horizontal.reasons import (
    PLANNED,
    VOCABULARY,
    reasons_of,
)
from kubetide.horizontal.rules.evaluate import evaluate_as_due
from kubetide.horizontal.rules.limits import down_limit, up_limit
from kubetide.horizontal.rules.waiting import due_at, is_waiting
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant, format_duration, format_rfc3339

_SHOWN_BEFORE = PROPOSALS | {
    "PodsCounted",
    "MetricFailed",
    "Winner",
    "Stabilized",
    "StabilizedAtStart",
    "Limited",
    "NodesAwaited",
    "NodesRefused",
    "RescalePlanned",
    "NothingToDo",
}
"""Reasons that the lines above them have said already, with more numbers."""


class HpaExplanation(msgspec.Struct, frozen=True):
    """One HPA at one time.

    Attributes:
        answer: What it has and wants, what holds it back and until when, in one line.
        holds: What makes another number of the largest proposal, and until when.
        current: ``spec.replicas`` of the target, None where its scale cannot be read; ``desired`` what the HPA wants, the
            same where it cannot tell.
        metrics: In the order of the spec; empty when metrics were not asked.
        unplaced: Names of its pods that no node has taken.
        proposal: The largest proposal.
        windows: The stabilization windows, each with what it remembers.
        stabilized: The proposal after stabilization.
        policies: What each policy allows now, in words.
        limited: After policies and bounds, before a pause; ``limit`` the reason of ``ScalingLimited``.
        flapping: Changes and reversals of the last hour; None where no annotation asks for them.
        what_ifs: What would have been decided without one of the rules.
        reasons: The verdict's reasons.
        way_out: What a person can do where metrics fail or no number is decided; empty where nothing is wrong.
    """

    namespace: str
    name: str
    at: Instant
    target: str
    minimum: int
    maximum: int
    current: int | None
    desired: int | None
    metrics: tuple[MetricExplanation, ...]
    unplaced: tuple[str, ...]
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
    way_out: str

    def lines(self) -> list[str]:
        """Return the explanation as text: the answer, then the way to it in the order of the algorithm."""
        replicas = "replicas not known" if self.current is None else f"{self.current} replicas"
        lines = [
            f"{self.namespace}/{self.name} at {format_rfc3339(self.at)}: {self.target}, {replicas}, bounds {self.minimum} to {self.maximum}",
            self.answer,
        ]
        if self.way_out:
            lines.append(f"way out: {self.way_out}")
        for metric in self.metrics:
            lines += metric_lines(metric)
        named = {pod for metric in self.metrics for pod in metric.unplaced}
        if others := [pod for pod in self.unplaced if pod not in named]:
            lines.append(f"pods without a node: {', '.join(others)}")
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
    """Explain what the loop decides about an HPA; of one that is not due, what it would decide.

    Raises: KeyError when there is no such HPA.
    """
    if key not in state.specs:
        raise KeyError(f"there is no HPA {key[0]}/{key[1]}")
    spec = state.specs[key]
    verdict = evaluate_as_due(state, key, now)
    waits = state.early is None and is_waiting(state, key, now)
    events = state.events.get(key, ScaleEvents())
    settled = Settlement(
        verdict=verdict,
        status=state.statuses[key],
        changes=(),
        events=(),
        late_events=(),
        action=PLANNED if verdict.rescale else "none",
        error=verdict.error,
        nodes=state.nodes.get(key),
    )
    metrics = explain_metrics(state, spec, verdict, now)
    windows = () if verdict.raw is None else windows_of(state, spec, verdict, now)
    reasons = reasons_of(settled, spec, state.holds)
    holds = holds_of(state, spec, verdict, windows, reasons, now)
    unplaced = unplaced_pods(state, spec)
    current = None if verdict.stage == "unread" else verdict.current
    return HpaExplanation(
        namespace=key[0],
        name=key[1],
        at=now,
        target=spec.reference,
        minimum=spec.minimum,
        maximum=spec.maximum,
        current=current,
        # Without a decision the number stays.
        desired=verdict.desired if verdict.stage == "decided" else current,
        metrics=metrics,
        unplaced=unplaced,
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
        answer=headline(
            verdict, metrics, holds, reasons, len(unplaced), due_at(state, key) if waits else None
        ),
        way_out=way_out(reasons, [metric.way_out for metric in metrics]),
    )


def _flapping(state: State, spec: Autoscaler, now: Instant) -> FlapReport | None:
    if not spec.options.flap_report:
        return None
    return flap_report(state.options.get(spec.key, OptionMemory()).changes, now)


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
