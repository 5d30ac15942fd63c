"""Why: the closed vocabulary of the horizontal loop, and the reasons of a verdict.

Every HPA has reasons in every tick, "nothing to do" included. Numbers are the ones that were
decided with; the sentences are made when someone reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.metrics.types import Arithmetic, Metric, MetricFailure, Proposal, Tally, Tolerance
from kubetide.horizontal.specs import Autoscaler
from kubetide.units.quantity import milli_to_text

CLASS_WORDS: Mapping[str, str] = {
    "unready": "not ready",
    "missing": "without a sample",
    "ignored": "failing or being deleted",
}
"""The classes of pods that do not count in full, as people read them."""

VOCABULARY = Vocabulary(
    {
        "ScaleUnreadable": "the scale of the target cannot be read: {error}",
        "ScalingDisabled": "the target is at 0 replicas, so the HPA leaves it alone",
        "OutsideBounds": "{current} replicas are outside minReplicas {minimum} to maxReplicas {maximum}; metrics are not asked",
        "PodsUncertain": "whose the pods are cannot be told: {error}",
        "PodsCounted": "{metric}: {ready} of {pods} pods count, {unready} not ready, {missing} without a sample, {ignored} failing or being deleted",
        "MetricProposal": "{metric}: {value} of {target}: {working}, so {proposed:replica}",
        "MetricFailed": "{metric}: {error}",
        "MetricsFailed": "too few metrics for a decision; the number of replicas stays",
        "Winner": "the largest proposal is {proposed}",
        "Stabilized": "recent recommendations hold {proposed} at {held}",
        "StabilizedAtStart": "the replicas found at the start count as a recommendation and hold {proposed} at {held}",
        "Limited": "{held} is held at {desired} ({limit})",
        "RescaleWanted": "{subject}: to be scaled from {current} to {desired}",
        "RescaleAdvised": "{subject}: would be scaled from {current} to {desired}",
        "Rescaled": "{subject}: scaled from {current} to {desired}",
        "RescaleRefused": "{subject}: the change from {current} to {desired} was refused: {error}",
        "NothingToDo": "{current} replicas are right",
    },
    actions=("Rescaled", "RescaleAdvised", "RescaleRefused"),
)
"""What is done names its HPA; the reasons for it are read beside it."""

WANTED = "wanted"
"""In the place of a settlement's action: the change was decided but not yet carried out."""


def signature(settlement: Settlement) -> tuple[object, ...]:
    """Gives what must change for a verdict to count as a new one; the values of metrics are not part of it."""
    verdict = settlement.verdict
    return (
        verdict.stage,
        verdict.current,
        verdict.desired,
        verdict.stabilized == verdict.raw,
        verdict.limit,
        settlement.action,
        settlement.withheld,
        settlement.error,
    )


def reasons_of(settlement: Settlement, spec: Autoscaler) -> tuple[Reason, ...]:
    """Gives all reasons of one HPA's tick, in the order of the algorithm."""
    verdict = settlement.verdict
    subject = "/".join(verdict.key)
    say = VOCABULARY.reason
    if verdict.stage == "unread":
        return (say("ScaleUnreadable", subject, error=settlement.error),)
    reasons = _of_metrics(verdict, spec, subject)
    if verdict.stage == "uncomputed":
        if verdict.grounds is None:
            return (say("PodsUncertain", subject, error=verdict.error),)
        return (*reasons, say("MetricsFailed", subject))
    if verdict.raw is not None:
        reasons.append(say("Winner", subject, proposed=verdict.raw))
        if verdict.stabilized != verdict.raw:
            code = "StabilizedAtStart" if verdict.first else "Stabilized"
            reasons.append(say(code, subject, proposed=verdict.raw, held=verdict.stabilized))
        if verdict.desired != verdict.stabilized:
            reasons.append(
                say("Limited", subject, held=verdict.stabilized, desired=verdict.desired, limit=verdict.limit)
            )
    elif verdict.rescale:
        reasons.append(
            say(
                "OutsideBounds",
                subject,
                current=verdict.current,
                minimum=spec.minimum,
                maximum=spec.maximum,
            )
        )
    else:
        return (say("ScalingDisabled", subject),)
    reasons.append(_ending(settlement, subject))
    return tuple(reasons)


def _ending(settlement: Settlement, subject: str) -> Reason:
    verdict = settlement.verdict
    if not verdict.rescale:
        return VOCABULARY.reason("NothingToDo", subject, current=verdict.current)
    numbers: dict[str, int] = {"current": verdict.current, "desired": verdict.desired}
    if settlement.withheld:
        return VOCABULARY.reason("RescaleAdvised", subject, **numbers)
    if settlement.action == "none":
        return VOCABULARY.reason("RescaleRefused", subject, error=settlement.error, **numbers)
    code = "RescaleWanted" if settlement.action == WANTED else "Rescaled"
    return VOCABULARY.reason(code, subject, **numbers)


def _of_metrics(verdict: Verdict, spec: Autoscaler, subject: str) -> list[Reason]:
    reasons: list[Reason] = []
    if verdict.grounds is None:
        return reasons
    for metric, found, tally in zip(spec.metrics, *verdict.grounds(), strict=True):
        if isinstance(found, MetricFailure):
            reasons.append(VOCABULARY.reason("MetricFailed", subject, metric=found.reason, error=found.text))
            continue
        assert isinstance(tally, Tally), "a proposal was made without pods"
        counted = {
            "pods": tally.pods,
            "ready": tally.ready,
            "unready": tally.unready,
            "missing": tally.missing,
            "ignored": tally.ignored,
        }
        reasons += [
            VOCABULARY.reason("PodsCounted", subject, metric=short_name(metric), **counted),
            proposal_reason(metric, found, tally, spec.tolerance, subject),
        ]
    return reasons


def proposal_reason(
    metric: Metric, found: Proposal, tally: Tally, tolerance: Tolerance, subject: str
) -> Reason:
    """Says how a metric comes to its number."""
    numbers = found.arithmetic
    return VOCABULARY.reason(
        "MetricProposal",
        subject,
        metric=short_name(metric),
        value=value_text(numbers),
        target=target_text(metric),
        ratio=numbers.ratio,
        filled_ratio=numbers.filled_ratio,
        working=_working(numbers, tally, tolerance),
        proposed=found.replicas,
    )


def short_name(metric: Metric) -> str:
    """A metric's name as people say it; conditions and events keep upstream's longer one."""
    if not metric.resource:
        return metric.type
    what = "utilization" if metric.average_milli is None else "usage"
    where = f" of container {metric.container}" if metric.container else ""
    return f"{metric.resource} {what}{where}"


def target_text(metric: Metric) -> str:
    """The target as in the spec, ``80%`` or ``250m``; empty when there is none."""
    if metric.average_milli is not None:
        return milli_to_text(metric.average_milli)
    return "" if metric.utilization is None else f"{metric.utilization}%"


def value_text(numbers: Arithmetic) -> str:
    """What was measured, in the terms of the target."""
    return milli_to_text(numbers.average) if numbers.utilization is None else f"{numbers.utilization}%"


def _working(numbers: Arithmetic, tally: Tally, tolerance: Tolerance) -> str:
    """The way from the ratio to the replicas, as ``proposal`` goes it."""
    filled_in = {
        name: count
        for name, count in (
            ("unready", tally.unready if numbers.ratio > 1.0 else 0),
            ("missing", tally.missing if numbers.ratio != 1.0 else 0),
        )
        if count
    }
    if numbers.filled_ratio is None or not filled_in:
        way = _times(numbers.replicas, numbers.ratio, tally.ready, tolerance)
        return f"ratio {numbers.ratio:.4g}{way}"
    more = sum(filled_in.values())
    which = ", ".join(f"{count} {CLASS_WORDS[name]}" for name, count in filled_in.items())
    filled = numbers.filled_ratio
    opening = f"ratio {numbers.ratio:.4g}; with {_pods(more)} filled in ({which}) {filled:.4g}"
    if not tolerance.holds(filled) and (numbers.ratio > 1.0) != (filled > 1.0):
        return f"{opening}, which turns the direction and changes nothing"
    return opening + _times(numbers.replicas, filled, tally.samples + more, tolerance)


def _times(replicas: int, ratio: float, count: int, tolerance: Tolerance) -> str:
    if tolerance.holds(ratio):
        return f" is within tolerance {1.0 - tolerance.down:.4g} to {1.0 + tolerance.up:.4g}"
    product = ratio * count
    way = f" x {_pods(count)} = {product:.4g}"
    if isfinite(product) and not product <= replicas < product + 1:
        return f"{way}, which would go against the direction and changes nothing"
    return way


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
