"""Why: the closed vocabulary of the horizontal loop, and the reasons of a verdict.

Every HPA has reasons in every tick, "nothing to do" included. Numbers are the ones that were
decided with; the sentences are made when someone reads them.
"""

from __future__ import annotations

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.metrics.types import MetricFailure, Proposal, Tally
from kubetide.units.quantity import milli_to_text

VOCABULARY = Vocabulary(
    {
        "ScaleUnreadable": "the scale of the target cannot be read: {error}",
        "ScalingDisabled": "the target is at 0 replicas, so the HPA leaves it alone",
        "OutsideBounds": "{current} replicas are outside minReplicas {minimum} to maxReplicas {maximum}; metrics are not asked",
        "PodsUncertain": "whose the pods are cannot be told: {error}",
        "PodsCounted": "{metric}: {ready} of {pods} pods count, {unready} not ready, {missing} without a sample, {ignored} failing or being deleted",
        "MetricProposal": "{metric}: {value} is {ratio} of the target, which asks for {proposed:replica}",
        "FilledIn": "{metric}: with the pods filled in that are not ready or have no sample, the ratio is {ratio}",
        "MetricFailed": "{metric}: {error}",
        "MetricsFailed": "too few metrics for a decision; the number of replicas stays",
        "Winner": "the largest proposal is {proposed}",
        "Stabilized": "recent recommendations hold {proposed} at {held}",
        "Limited": "{held} is held at {desired} ({limit})",
        "RescaleWanted": "{subject}: to be scaled from {current} to {desired}",
        "Rescaled": "{subject}: scaled from {current} to {desired}",
        "RescaleRefused": "{subject}: the change from {current} to {desired} was refused: {error}",
        "NothingToDo": "{current} replicas are right",
    },
    actions=("Rescaled", "RescaleRefused"),
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
        settlement.error,
    )


def reasons_of(settlement: Settlement, *, minimum: int, maximum: int) -> tuple[Reason, ...]:
    """Gives all reasons of one HPA's tick, in the order of the algorithm."""
    verdict = settlement.verdict
    subject = "/".join(verdict.key)
    say = VOCABULARY.reason
    if verdict.stage == "unread":
        return (say("ScaleUnreadable", subject, error=settlement.error),)
    reasons = _of_metrics(verdict, subject)
    if verdict.stage == "uncomputed":
        if verdict.grounds is None:
            return (say("PodsUncertain", subject, error=verdict.error),)
        return (*reasons, say("MetricsFailed", subject))
    if verdict.raw is not None:
        reasons.append(say("Winner", subject, proposed=verdict.raw))
        if verdict.stabilized != verdict.raw:
            reasons.append(say("Stabilized", subject, proposed=verdict.raw, held=verdict.stabilized))
        if verdict.desired != verdict.stabilized:
            reasons.append(
                say("Limited", subject, held=verdict.stabilized, desired=verdict.desired, limit=verdict.limit)
            )
    elif verdict.rescale:
        reasons.append(
            say("OutsideBounds", subject, current=verdict.current, minimum=minimum, maximum=maximum)
        )
    else:
        reasons.append(say("ScalingDisabled", subject))
    reasons.append(_ending(settlement, subject))
    return tuple(reasons)


def _ending(settlement: Settlement, subject: str) -> Reason:
    verdict = settlement.verdict
    if not verdict.rescale:
        return VOCABULARY.reason("NothingToDo", subject, current=verdict.current)
    numbers: dict[str, int] = {"current": verdict.current, "desired": verdict.desired}
    if settlement.action == "none":
        return VOCABULARY.reason("RescaleRefused", subject, error=settlement.error, **numbers)
    code = "RescaleWanted" if settlement.action == WANTED else "Rescaled"
    return VOCABULARY.reason(code, subject, **numbers)


def _of_metrics(verdict: Verdict, subject: str) -> list[Reason]:
    reasons: list[Reason] = []
    if verdict.grounds is None:
        return reasons
    for found, tally in zip(*verdict.grounds(), strict=True):
        reasons += of_proposal(found, tally, subject)
    return reasons


def of_proposal(found: Proposal | MetricFailure, tally: Tally | str, subject: str) -> list[Reason]:
    """Gives the reasons of one metric."""
    say = VOCABULARY.reason
    if isinstance(found, MetricFailure):
        return [say("MetricFailed", subject, metric=found.reason, error=found.text)]
    assert isinstance(tally, Tally), "a proposal was made without pods"
    counted = {
        "pods": tally.pods,
        "ready": tally.ready,
        "unready": tally.unready,
        "missing": tally.missing,
        "ignored": tally.ignored,
    }
    numbers = found.arithmetic
    value = milli_to_text(numbers.average) if numbers.utilization is None else f"{numbers.utilization}%"
    reasons = [
        say("PodsCounted", subject, metric=_short(found.name), **counted),
        say(
            "MetricProposal",
            subject,
            metric=_short(found.name),
            value=value,
            ratio=numbers.ratio,
            proposed=found.replicas,
        ),
    ]
    if numbers.filled_ratio is not None:
        reasons.append(say("FilledIn", subject, metric=_short(found.name), ratio=numbers.filled_ratio))
    return reasons


def _short(name: str) -> str:
    """A metric's name as people say it; conditions and events keep upstream's longer one."""
    return name.replace(" resource utilization (percentage of request)", " utilization")
