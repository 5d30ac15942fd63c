"""The closed vocabulary of reasons of the horizontal loop, and the reasons of a verdict.

Every HPA has reasons in every tick, "nothing to do" included. Numbers are the ones that were
decided with; the sentences are made when someone reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.explain.calculation import PROPOSALS, SENTENCES, proposal_reason, short_name
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.metrics.types import Metric, MetricFailure, Tally
from kubetide.horizontal.status.conditions import INVALID_BOUNDS, SELECTOR_MISSING
from kubetide.units.time import format_duration, format_rfc3339

CLASS_WORDS: Mapping[str, str] = {
    "unready": "not ready",
    "missing": "without a sample",
    "ignored": "failing or being deleted",
}
"""The classes of pods that do not count in full, as people read them."""


def _telling(reasons: Sequence[Reason]) -> list[Reason]:
    """Leave out what a person learns nothing from: that every pod counts, and the largest of one proposal.

    The records keep them all.
    """
    proposals = sum(1 for reason in reasons if reason.code in PROPOSALS)
    return [
        reason
        for reason in reasons
        if not (reason.code == "Winner" and proposals == 1)
        and not (reason.code == "PodsCounted" and reason.fields.get("ready") == reason.fields.get("pods"))
    ]


VOCABULARY = Vocabulary(
    {
        "ScaleUnreadable": "the scale of the target cannot be read: {error}",
        "ScalingDisabled": "the target is at 0 replicas, so the HPA leaves it alone until somebody scales it to 1 or more",
        "OutsideBounds": "{current} replicas are outside minReplicas {minimum} to maxReplicas {maximum}; metrics are not asked",
        "BoundsCrossed": "no number is decided: {error}",
        "SelectorMissing": "no number is decided, as {error}",
        "PodsUncertain": "whose the pods are cannot be known: {error}",
        "PodsCounted": "{metric}: {ready} of {pods} pods count, {unready} not ready, {missing} without a sample, {ignored} failing or being deleted",
        **SENTENCES,
        "MetricFailed": "{metric}: {error}",
        "NotDue": "it is not due yet by its own sync period",
        "FellBack": "too few metrics for a decision; the annotation horizontal.kubetide.io/fallback proposes {proposed:replica}",
        "MetricsFailed": "too few metrics for a decision; the number of replicas stays",
        "Winner": "the largest proposal is {proposed}",
        "Stabilized": "recent recommendations hold {proposed} at {held}",
        "StabilizedAtStart": "the replicas found at the start count as a recommendation and hold {proposed} at {held}",
        "Limited": "{held} is held at {desired} ({limit})",
        "HeldUntilReady": "the change from {current} to {desired} waits until the pods of the last scale-up are ready: {ready} of {current} are",
        "Paused": "the change from {current} to {desired} is paused by the annotation horizontal.kubetide.io/pause",
        "AdjustedByOption": "the option horizontal.kubetide.io/{option} makes {desired} of {proposed}",
        "BeyondSaturation": "the pods are at their CPU limits, which hide how much more is asked for: {proposed} replicas are proposed",
        "HeadroomLearned": "{proposed} replicas are proposed in the place of the target's: what this load's own past says may come before new pods serve",
        "Forecast": "{load} pods' worth of load are forecast for {at}, as an onset comes again every {period}: at least {pods:pod} until it is over",
        "ForecastBy": "{load} pods' worth of load are forecast for {at} by {forecaster}, which does better on this load's past than its level: at least {pods:pod}",
        "OutageHeld": "the load fell far below all of the last half hour: {pods:pod} are held until {at}",
        "ForecastCame": "of the {forecast} pods' worth of load forecast for {at} (every {period}) {came} came; it cost {cost} pod-minutes",
        "EmptiestNodeFirst": "{pods:pod} on the nodes with the fewest pods are marked to go first",
        "IdlestFirst": "{pods:pod} that use least are marked to go first",
        "NodesAwaited": "no node yet for {missing:replica} (there or to come): {detail}; {when}",
        "NodesRefused": "no node for {missing:replica} (there or to come), and no node group takes {refused} of them: {detail}",
        "ScaleDownHeld": "the change from {current} to {proposed} holds: {why}",
        "RescalePlanned": "{subject}: to be scaled from {current} to {desired}",
        "RescaleAdvised": "{subject}: would be scaled from {current} to {desired}",
        "Rescaled": "{subject}: scaled from {current} to {desired}",
        "RescaleRefused": "{subject}: the change from {current} to {desired} was refused: {error}",
        "RescalePending": "{subject}: the change from {current} to {desired} is not known to be made: {why}",
        "NothingToDo": "it stays at {current:replica}",
    },
    actions=("Rescaled", "RescaleAdvised", "RescaleRefused", "RescalePending"),
    fruitless=("RescaleAdvised", "RescaleRefused", "RescalePending"),
    changes={"Rescaled": ("current", "desired"), "RescaleAdvised": ("current", "desired")},
    telling=_telling,
)
"""What is done names its HPA; the reasons for it are read beside it."""

PLANNED = "planned"
"""In the place of a settlement's action: the change was decided but not yet carried out."""


def signature(settlement: Settlement) -> tuple[object, ...]:
    """Return what must change for a verdict to count as new; metric values are not part of it."""
    verdict = settlement.verdict
    return (
        verdict.stage,
        verdict.current,
        verdict.desired,
        verdict.stabilized == verdict.raw,
        verdict.limit,
        verdict.held_back,
        verdict.ahead.pods,
        verdict.came,
        settlement.action,
        settlement.withheld,
        settlement.pending,
        settlement.error,
        # How many there are changes with each node that comes.
        settlement.nodes and (settlement.nodes.refused > 0, settlement.nodes.detail),
    )


def reasons_of(settlement: Settlement, spec: Autoscaler, holds: Sequence[str] = ()) -> tuple[Reason, ...]:
    """Return all reasons of one HPA's tick, in the order of the algorithm; ``holds`` are those that hold scale-downs."""
    verdict = settlement.verdict
    subject = "/".join(verdict.key)
    say = VOCABULARY.reason
    if verdict.stage == "unread":
        return (say("ScaleUnreadable", subject, error=settlement.error),)
    if verdict.stage == "waiting":
        return (say("NotDue", subject),)
    reasons = _of_metrics(verdict, spec, subject)
    if verdict.stage == "uncomputed":
        if verdict.grounds is None:
            return (_without_metrics(verdict, subject),)
        return (*reasons, say("MetricsFailed", subject))
    if verdict.raw is not None:
        reasons += _of_number(verdict, holds, subject)
    elif verdict.rescale or verdict.unpaused is not None or verdict.adjusted:
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
    reasons += _of_forecast(verdict, subject)
    reasons += _of_options(verdict, spec, subject)
    reasons += _of_nodes(settlement, subject)
    reasons.append(_ending(settlement, subject))
    return tuple(reasons)


def _of_number(verdict: Verdict, holds: Sequence[str], subject: str) -> list[Reason]:
    """Return how the largest proposal became the desired number."""
    say, reasons = VOCABULARY.reason, list[Reason]()
    code = "FellBack" if verdict.fallback else "Winner"
    reasons.append(say(code, subject, proposed=verdict.raw))
    if verdict.stabilized != verdict.raw:
        code = "StabilizedAtStart" if verdict.first else "Stabilized"
        reasons.append(say(code, subject, proposed=verdict.raw, held=verdict.stabilized))
    if verdict.limited != verdict.stabilized:
        reasons.append(
            say(
                "Limited",
                subject,
                held=verdict.stabilized,
                desired=verdict.limited,
                limit=verdict.limit,
            )
        )
    if verdict.held_back is not None:
        why = "; ".join(holds)
        reasons.append(
            say("ScaleDownHeld", subject, current=verdict.current, proposed=verdict.held_back, why=why)
        )
    return reasons


def _of_options(verdict: Verdict, spec: Autoscaler, subject: str) -> list[Reason]:
    """Return what the options of the HPA changed."""
    say, reasons = VOCABULARY.reason, list[Reason]()
    if verdict.unready is not None:
        reasons.append(
            say(
                "HeldUntilReady",
                subject,
                current=verdict.current,
                desired=verdict.unready,
                ready=verdict.ready,
            )
        )
    proposed = verdict.unadjusted
    for option, number in verdict.adjusted:
        reasons.append(say("AdjustedByOption", subject, option=option, desired=number, proposed=proposed))
        proposed = number
    if verdict.unpaused is not None:
        reasons.append(say("Paused", subject, current=verdict.current, desired=verdict.unpaused))
    if verdict.costs:
        code = "EmptiestNodeFirst" if spec.options.emptiest_node_first else "IdlestFirst"
        reasons.append(say(code, subject, pods=len(verdict.costs)))
    return reasons


def _of_nodes(settlement: Settlement, subject: str) -> list[Reason]:
    """Return whether replicas without a node get one, and when."""
    nodes = settlement.nodes
    if nodes is None:
        return []
    if nodes.refused:
        numbers = {"missing": nodes.missing, "refused": nodes.refused}
        return [VOCABULARY.reason("NodesRefused", subject, detail=nodes.detail, **numbers)]
    when = "when they come is not known yet"
    if nodes.expected is not None:
        when = f"expected by {format_rfc3339(nodes.expected)}"
    return [VOCABULARY.reason("NodesAwaited", subject, missing=nodes.missing, detail=nodes.detail, when=when)]


def _ending(settlement: Settlement, subject: str) -> Reason:
    verdict = settlement.verdict
    if not verdict.rescale:
        return VOCABULARY.reason("NothingToDo", subject, current=verdict.current)
    numbers: dict[str, int] = {"current": verdict.current, "desired": verdict.desired}
    if settlement.withheld:
        return VOCABULARY.reason("RescaleAdvised", subject, **numbers)
    if settlement.pending:
        return VOCABULARY.reason("RescalePending", subject, why=settlement.pending, **numbers)
    if settlement.action == "none":
        return VOCABULARY.reason("RescaleRefused", subject, error=settlement.error, **numbers)
    code = "RescalePlanned" if settlement.action == PLANNED else "Rescaled"
    return VOCABULARY.reason(code, subject, **numbers)


def _of_forecast(verdict: Verdict, subject: str) -> list[Reason]:
    """Return what is forecast, and what came of what was."""
    say, reasons = VOCABULARY.reason, []
    if verdict.came is not None:
        came = verdict.came
        reasons.append(
            say(
                "ForecastCame",
                subject,
                forecast=round(came.forecast, 1),
                came=round(came.came, 1),
                at=format_rfc3339(came.at),
                period=format_duration(came.period),
                cost=round(came.pod_minutes, 1),
            )
        )
    if verdict.beyond is not None:
        reasons.append(say("BeyondSaturation", subject, proposed=verdict.beyond))
    if verdict.headroom is not None:
        reasons.append(say("HeadroomLearned", subject, proposed=verdict.headroom))
    ahead = verdict.ahead
    if ahead.outage:
        reasons.append(say("OutageHeld", subject, pods=ahead.pods, at=format_rfc3339(ahead.at)))
    elif ahead.pods and ahead.by:
        at = format_rfc3339(ahead.at)
        load = round(ahead.load, 1)
        reasons.append(say("ForecastBy", subject, load=load, at=at, forecaster=ahead.by, pods=ahead.pods))
    elif ahead.pods:
        reasons.append(
            say(
                "Forecast",
                subject,
                load=round(ahead.load, 1),
                at=format_rfc3339(ahead.at),
                period=format_duration(ahead.period),
                pods=ahead.pods,
            )
        )
    return reasons


def _without_metrics(verdict: Verdict, subject: str) -> Reason:
    """Return why metrics were not even asked."""
    note = verdict.notes[-1]
    codes = {INVALID_BOUNDS: "BoundsCrossed", SELECTOR_MISSING.reason: "SelectorMissing"}
    if note.reason in codes:
        return VOCABULARY.reason(codes[note.reason], subject, error=note.message)
    return VOCABULARY.reason("PodsUncertain", subject, error=verdict.error)


def _of_metrics(verdict: Verdict, spec: Autoscaler, subject: str) -> list[Reason]:
    reasons: list[Reason] = []
    if verdict.grounds is None:
        return reasons
    for metric, found, known in zip(spec.metrics, *verdict.grounds(), strict=True):
        if isinstance(found, MetricFailure):
            reasons.append(VOCABULARY.reason("MetricFailed", subject, metric=found.reason, error=found.text))
            continue
        if isinstance(known, Tally):
            reasons.append(_counted(metric, known, subject))
        reasons.append(
            proposal_reason(metric, found, known, spec.tolerance, verdict.current, subject, VOCABULARY)
        )
    return reasons


def _counted(metric: Metric, tally: Tally, subject: str) -> Reason:
    return VOCABULARY.reason(
        "PodsCounted",
        subject,
        metric=short_name(metric),
        pods=tally.pods,
        ready=tally.ready,
        unready=tally.unready,
        missing=tally.missing,
        ignored=tally.ignored,
    )
