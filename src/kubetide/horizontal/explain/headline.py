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
from kubetide.horizontal.rules.evaluate import limit_of
from kubetide.horizontal.rules.limits import Limited
from kubetide.horizontal.state import State
from kubetide.units.time import Instant, after, format_duration, format_rfc3339

_FORECASTS: Final = frozenset({"OutageHeld", "Forecast", "ForecastBy"})
_HOLDING: Final = frozenset({"HeldUntilReady", "Paused", "ScaleDownHeld", "AdjustedByOption"})
"""Reasons for another number than policies and bounds allow."""

_NODES: Final = frozenset({"NodesAwaited", "NodesRefused"})
"""Reasons for which replicas do not run, whatever their number."""

_BOUNDS: Final = frozenset({"TooManyReplicas", "TooFewReplicas"})

_ENDINGS: Final = frozenset({"RescalePlanned", "NothingToDo"})


def holds_of(
    state: State,
    spec: Autoscaler,
    verdict: Verdict,
    windows: Sequence[Window],
    reasons: Sequence[Reason],
    now: Instant,
) -> tuple[str, ...]:
    """Return what makes another number of the largest proposal, in the order of the algorithm, and until when where that is known."""
    if verdict.raw is None or verdict.stabilized is None:
        return ()
    holds = []
    # Where a bound makes the same number of both, the window holds nothing.
    bound = min(max(verdict.raw, spec.minimum), spec.maximum)
    if verdict.stabilized != verdict.raw and not (verdict.limit in _BOUNDS and bound == verdict.limited):
        direction = "down" if verdict.stabilized > verdict.raw else "up"
        # What never happens does not happen after the window either.
        holds.append(
            f"its behavior disables scale-{direction}"
            if _is_disabled(spec, direction)
            else _window_text(verdict.raw, verdict.stabilized, windows)
        )
    if verdict.limited != verdict.stabilized:
        holds.append(_limit_text(state, spec, Limited(verdict.limited, verdict.limit), now))
    for reason in reasons:
        if reason.code in _HOLDING:
            holds.append(VOCABULARY.text(reason))
        elif (
            reason.code in _FORECASTS
            and verdict.reactive is not None
            and verdict.ahead.pods > verdict.reactive
        ):
            limit = _limit_of_forecast(state, spec, verdict, now)
            # Where the same limit holds the proposal, the forecast changes nothing.
            if limit not in holds:
                holds += filter(None, (VOCABULARY.text(reason), limit))
    return tuple(holds)


def headline(
    verdict: Verdict,
    metrics: Sequence[MetricExplanation],
    holds: Sequence[str],
    reasons: Sequence[Reason],
    unplaced: int,
    due: Instant | None = None,
) -> str:
    """Return the answer in one line.

    Args:
        verdict: The verdict on the HPA.
        metrics: What its metrics came to.
        holds: What makes another number of the largest proposal.
        reasons: The verdict's reasons.
        unplaced: How many of its pods have no node.
        due: When an HPA that waits for its own sync period is decided about; None for one that does not wait.
    """
    when = "now" if due is None else f"at {format_rfc3339(due)}, when its own sync period is over"
    current, desired = verdict.current, verdict.desired
    have = f"It has {current} {'replica' if current == 1 else 'replicas'}"
    have += f" ({unplaced} of them without a node)" if unplaced else ""
    problems = "; ".join(f"{one.name}: {one.problem}" for one in metrics if one.problem)
    if verdict.stage != "decided" or verdict.raw is None:
        if problems:
            return f"{have}, and keeps them, as {_why_kept(metrics)}: {problems}."
        why = why_undecided(reasons)
        if verdict.stage == "unread":
            return f"How many replicas it has is not known: {why}."
        return f"{have}{f' and is to be scaled to {desired} {when}' if verdict.rescale else ''}: {why}."
    failing = f" A metric fails: {problems}." if problems else ""
    wants = f"wants {verdict.raw}{_by(verdict, metrics)}"
    end = f"is to be scaled to {desired} {when}" if verdict.rescale else f"stays at {current}"
    nodes = next((VOCABULARY.text(reason) for reason in reasons if reason.code in _NODES), "")
    nodes = f" {nodes[0].upper()}{nodes[1:]}." if nodes else ""
    if holds:
        return f"{have} and {wants}, but {joined(holds)}, so it {end}.{nodes}{failing}"
    if verdict.rescale:
        return f"{have}, {wants}, and {end}.{nodes}{failing}"
    if nodes:
        return f"{have} and {wants}.{nodes}{failing}"
    return f"{have} and {wants}: nothing holds it back.{failing}"


def _why_kept(metrics: Sequence[MetricExplanation]) -> str:
    """Say why nothing is scaled while metrics fail; metrics that propose anything propose fewer replicas then."""
    proposals = [f"{one.name} proposes {one.proposed}" for one in metrics if one.proposed is not None]
    if not proposals:
        return "it cannot tell how many it wants"
    return f"nothing is scaled down while a metric fails ({', '.join(proposals)})"


def why_undecided(reasons: Sequence[Reason]) -> str:
    """Return why no metric made a number."""
    return "; ".join(VOCABULARY.text(reason) for reason in reasons if reason.code not in _ENDINGS)


def joined(holds: Sequence[str]) -> str:
    """Return holds as a part of a sentence."""
    return ", and ".join(holds)


def _by(verdict: Verdict, metrics: Sequence[MetricExplanation]) -> str:
    """Name what made the largest proposal: a metric with its value, or what stands in for it."""
    if verdict.fallback:
        return " (its fallback)"
    if verdict.headroom is not None:
        return " (by learned headroom)"
    if verdict.beyond is not None:
        return " (as its pods are at their CPU limits)"
    found = next((one for one in metrics if one.working and one.proposed == verdict.raw), None)
    if found is None or found.working is None:
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


def _is_disabled(spec: Autoscaler, direction: str) -> bool:
    """Return whether the behavior never scales in a direction, ``up`` or ``down``."""
    rules = spec.up if direction == "up" else spec.down
    return rules is not None and rules.select == "Disabled"


def _limit_of_forecast(state: State, spec: Autoscaler, verdict: Verdict, now: Instant) -> str:
    """Name the limit that allows fewer pods now than are forecast; empty if none does."""
    pods, current = verdict.ahead.pods, verdict.current
    # Up to the current replicas a forecast only keeps pods; no limit is asked.
    if pods <= current:
        return ""
    limited = limit_of(spec, state, pods, current, now)
    return _limit_text(state, spec, limited, now) if limited.replicas < pods else ""


def _limit_text(state: State, spec: Autoscaler, limited: Limited, now: Instant) -> str:
    """Name the bound or the policies that limit a number, and when they allow more."""
    if limited.reason == "TooManyReplicas":
        return f"maxReplicas holds it at {limited.replicas}"
    if limited.reason == "TooFewReplicas":
        return f"minReplicas holds it at {limited.replicas}"
    upwards = limited.reason == "ScaleUpLimit"
    rules = spec.up if upwards else spec.down
    if rules is None:
        return f"the default scale-up limit (double, or 4) allows no more than {limited.replicas} at once"
    direction = "up" if upwards else "down"
    if _is_disabled(spec, direction):
        return f"its behavior disables scale-{direction}"
    events = state.events.get(spec.key, ScaleEvents())
    changes = events.ups if upwards else events.downs
    ends = [
        after(Instant(event.at), policy.period)
        for policy in rules.policies
        for event in changes
        if event.at > now - policy.period
    ]
    until = f" until {format_rfc3339(min(ends))}" if ends else " at once"
    return f"the scale-{direction} policies allow no {'more' if upwards else 'fewer'} than {limited.replicas}{until}"
