"""The answer about an HPA in one line: what it has and wants, what holds it back, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Verdict
from kubetide.horizontal.explain.metrics import MetricExplanation
from kubetide.horizontal.explain.windows import DOWN, UP, Window
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.memory import ScaleEvents
from kubetide.horizontal.reasons import VOCABULARY
from kubetide.units.time import Instant, after, format_duration, format_rfc3339

_HOLDING: Final = frozenset(
    {"HeldUntilReady", "Paused", "ScaleDownHeld", "AdjustedByOption", "OutageHeld", "Forecast", "ForecastBy"}
)
"""Reasons for another number than policies and bounds allow."""

_ENDINGS: Final = frozenset({"RescalePlanned", "NothingToDo"})


def holds_of(
    spec: Autoscaler,
    verdict: Verdict,
    windows: Sequence[Window],
    events: ScaleEvents,
    reasons: Sequence[Reason],
    now: Instant,
) -> tuple[str, ...]:
    """Return what makes another number of the largest proposal, in the order of the algorithm, and until when where that is known."""
    if verdict.raw is None or verdict.stabilized is None:
        return ()
    holds = []
    if verdict.stabilized != verdict.raw:
        holds.append(_window_text(verdict.raw, verdict.stabilized, windows))
    if verdict.limited != verdict.stabilized:
        holds.append(_limit_text(spec, verdict, events, now))
    if verdict.desired != verdict.limited or verdict.adjusted:
        holds += [VOCABULARY.text(reason) for reason in reasons if reason.code in _HOLDING]
    return tuple(holds)


def headline(
    verdict: Verdict, metrics: Sequence[MetricExplanation], holds: Sequence[str], reasons: Sequence[Reason]
) -> str:
    """Return the answer in one line."""
    current, desired = verdict.current, verdict.desired
    unplaced = max((len(one.unplaced) for one in metrics), default=0)
    have = f"It has {current} {'replica' if current == 1 else 'replicas'}"
    have += f" ({unplaced} of them without a node)" if unplaced else ""
    problems = "; ".join(f"{one.name}: {one.problem}" for one in metrics if one.problem)
    if verdict.stage != "decided" or verdict.raw is None:
        if problems:
            return f"{have}, and keeps them, as it cannot tell how many it wants: {problems}."
        why = "; ".join(VOCABULARY.text(reason) for reason in reasons if reason.code not in _ENDINGS)
        return f"{have}{f' and is to be scaled to {desired} now' if verdict.rescale else ''}: {why}."
    failing = f" A metric fails: {problems}." if problems else ""
    wants = f"wants {verdict.raw}{_by(verdict, metrics)}"
    end = f"is to be scaled to {desired} now" if verdict.rescale else f"stays at {current}"
    if holds:
        return f"{have} and {wants}, but {' and '.join(holds)}, so it {end}.{failing}"
    if verdict.rescale:
        return f"{have}, {wants}, and {end}.{failing}"
    return f"{have} and {wants}: nothing holds it back.{failing}"


def _by(verdict: Verdict, metrics: Sequence[MetricExplanation]) -> str:
    """Name the metric that made the largest proposal, if one did, with its value."""
    found = next((one for one in metrics if one.working and one.proposed == verdict.raw), None)
    if verdict.fallback or found is None or found.working is None:
        return ""
    filled = found.working.fields.get("filled")
    pods = f", with {filled} {'pod' if filled == 1 else 'pods'} filled in" if filled else ""
    within = ", within tolerance" if found.working.code.startswith("MetricWithinTolerance") else ""
    return f" ({found.name} {found.value} of {found.target}{pods}{within})"


def _window_text(raw: int, held: int, windows: Sequence[Window]) -> str:
    """Name the window that holds a proposal, and when the recommendation that does so leaves it."""
    direction, name = (DOWN, "scale-down") if held > raw else (UP, "scale-up")
    window = next((one for one in windows if one.direction == direction), None)
    if window is None:
        return f"earlier recommendations hold it at {held}"
    holding = [
        one.last
        for one in window.remembered
        if (one.replicas >= held if direction == DOWN else one.replicas <= held)
    ]
    if not holding:
        return f"the long scale-down window holds it at {held}"
    until = format_rfc3339(after(max(holding), window.length))
    return f"the {name} window of {format_duration(window.length)} holds it at {held} until {until}"


def _limit_text(spec: Autoscaler, verdict: Verdict, events: ScaleEvents, now: Instant) -> str:
    """Name the bound or the policies that limit a stabilized number, and when they allow more."""
    if verdict.limit == "TooManyReplicas":
        return f"maxReplicas holds it at {verdict.limited}"
    if verdict.limit == "TooFewReplicas":
        return f"minReplicas holds it at {verdict.limited}"
    upwards = verdict.limit == "ScaleUpLimit"
    rules = spec.up if upwards else spec.down
    if rules is None:
        return f"it may at most double, or grow to 4, at once ({verdict.limited})"
    direction = "up" if upwards else "down"
    if rules.select == "Disabled":
        return f"its behavior disables scale-{direction}"
    changes = events.ups if upwards else events.downs
    ends = [
        after(Instant(event.at), policy.period)
        for policy in rules.policies
        for event in changes
        if event.at > now - policy.period
    ]
    until = f" until {format_rfc3339(min(ends))}" if ends else " at once"
    return f"the scale-{direction} policies allow no {'more' if upwards else 'fewer'} than {verdict.limited}{until}"
