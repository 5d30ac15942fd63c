"""The closed vocabulary of reasons of the recommender, and the reasons of one container's recommendation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.objects.vpa import CONTAINER_OFF
from kubetide.units.quantity import bytes_to_text, milli_to_text
from kubetide.units.time import Instant, format_rfc3339
from kubetide.vertical.recommender.facts.members import Vpa
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.conditions import NO_PODS_MESSAGE
from kubetide.vertical.recommender.targets.estimate import (
    LOWER,
    TARGET,
    UPPER,
    Usage,
    confidence,
    estimates,
    least_amounts,
    margined,
    percentiles,
    usage_of,
)
from kubetide.vertical.recommender.targets.fitting import Fit
from kubetide.vertical.recommender.targets.floors import Floor
from kubetide.vertical.recommender.targets.rendering import NO_CAP, Caps, caps_of
from kubetide.vertical.recommender.targets.statuses import awaits_sizes, fit_of_vpa
from kubetide.vertical.recommender.targets.unmeasured import stored_of
from kubetide.vertical.recommender.usage.histograms import NEVER
from kubetide.vertical.resources.policies import container_policy

VOCABULARY = Vocabulary(
    {
        "TargetUnusable": "{subject}: {problem}",
        "SizesUnknown": "{subject}: what new nodes have left is not known yet, and targets must fit them: the recommendation stays as it is",
        "NoPods": "{subject}: " + NO_PODS_MESSAGE.lower(),
        "ContainerOff": "{subject}: the policy of the container is Off",
        "LeftToHpa": "{subject}: {resource}: HorizontalPodAutoscaler {hpa} scales on its utilization, so it is left alone",
        "NoSamples": "{subject}: no sample yet; the pod's minimum stands in",
        "SamplesAwaited": "{subject}: no sample yet; there is no recommendation before the first one",
        "RecommendationKept": "{subject}: no sample yet; the recommendation stays as it is",
        "SamplesCounted": "{subject}: {samples:sample} of CPU from {first} to {last}, from {sources:group} of pods with the same labels",
        "HistoryLoaded": "{subject}: the checkpoint loaded at the start counts with them",
        "PercentileTaken": "{subject}: {resource}: percentile {percentile} of the {bound} is {amount}; with a margin of {margin} it is {wide}",
        "ConfidenceApplied": "{subject}: {resource}: confidence {confidence} makes {before} the {bound} {after}",
        "MinimumApplied": "{subject}: {resource}: the {bound} {before} is below the container's share {least} of the pod's minimum",
        "OomFloor": "{subject}: {resource}: the {bound} {before} is below {least}, which an OOM kill at {at} proved necessary; it holds until {until}",
        "RolledBack": "{subject}: {resource}: the {bound} {before} is raised to {least}, what the pods asked for before: they were worse off with less at {at}; it holds until {until}",
        "FittedToNodes": "{subject}: {resource}: the {bound} {before} is lowered to {after}: the containers of the pod together must fit a new node, which has {cpu} CPU and {memory} left",
        "CappedToMinimum": "{subject}: {resource}: the {bound} {before} is below minAllowed {bound_amount}",
        "CappedToMaximum": "{subject}: {resource}: the {bound} {before} is above the maximum {bound_amount}",
        "Recommended": "{subject}: {resource}: target {target}, from {lower} to {upper}",
    },
    actions=("Recommended",),
    quantities=(
        *("amount", "wide", "before", "after", "least"),
        *("bound_amount", "memory", "target", "lower", "upper"),
    ),
)
"""What is recommended names its container; the reasons for it are read beside it."""

_Say = Callable[..., Reason]
"""Returns a reason for one bound of one resource."""

_BOUNDS: Mapping[int, str] = {TARGET: "target", LOWER: "lower bound", UPPER: "upper bound"}


def reasons_of(state: State, vpa: Vpa, container: str) -> tuple[Reason, ...]:
    """Return the reasons of a container's recommendation, in the order of the algorithm.

    A container that the VPA knows nothing of has reasons too: none of its pods match, or it is Off.
    """
    subject = "/".join((*vpa.key, container) if container else vpa.key)
    say = VOCABULARY.reason
    if vpa.view.target.problem:
        return (say("TargetUnusable", subject, problem=vpa.view.target.problem),)
    if awaits_sizes(state):
        return (say("SizesUnknown", subject),)
    cells = dict(state.cells_of(vpa))
    if container not in cells:
        return (say("NoPods", subject),)
    policy = container_policy(vpa.view.policy, container)
    if policy is not None and policy.mode == CONTAINER_OFF:
        return (say("ContainerOff", subject),)
    rows = cells[container]
    usage = usage_of(state.aggregates, [rows])
    if state.settings.wait_for_samples and not usage.count[0]:
        return tuple(_unmeasured(vpa, container, subject))
    reasons = [_counted(subject, usage, len(rows))]
    if container in vpa.loaded:
        reasons.append(say("HistoryLoaded", subject))
    for resource in ("cpu", "memory"):
        left = next((one for one in vpa.view.left if one.concerns(container, resource)), None)
        if left is not None:
            reasons.append(say("LeftToHpa", subject, resource=resource, hpa=left.hpa))
            continue
        if policy is None or policy.controlled_resources is None or resource in policy.controlled_resources:
            reasons += _of_resource(state, vpa, container, usage, resource)
    return tuple(reasons)


def _unmeasured(vpa: Vpa, container: str, subject: str) -> Iterator[Reason]:
    kept = stored_of(vpa, container)
    if kept is None:
        yield VOCABULARY.reason("SamplesAwaited", subject)
        return
    yield VOCABULARY.reason("RecommendationKept", subject)
    for resource, target in (kept.target or {}).items():
        lower, upper = ((bound or {}).get(resource, target) for bound in (kept.lower_bound, kept.upper_bound))
        amounts = {"target": str(target), "lower": str(lower), "upper": str(upper)}
        yield VOCABULARY.reason("Recommended", subject, resource=resource, **amounts)


def _counted(subject: str, usage: Usage, sources: int) -> Reason:
    count = int(usage.count[0])
    if count == 0:
        return VOCABULARY.reason("NoSamples", subject)
    return VOCABULARY.reason(
        "SamplesCounted",
        subject,
        samples=count,
        first=_time(int(usage.first[0])),
        last=_time(int(usage.last[0])),
        sources=sources,
    )


def _time(time: int) -> str:
    return "never" if time == NEVER else format_rfc3339(Instant(time))


def _of_resource(state: State, vpa: Vpa, container: str, usage: Usage, resource: str) -> list[Reason]:
    settings = state.settings
    subject = "/".join((*vpa.key, container))
    off = [container_policy(vpa.view.policy, name) for name, _ in state.cells_of(vpa)]
    shares = np.array([sum(one is None or one.mode != CONTAINER_OFF for one in off)])
    [floor] = least_amounts(settings, shares)[resource != "cpu"].tolist()
    base, wide = margined(usage, resource, settings)
    text = milli_to_text if resource == "cpu" else bytes_to_text
    found = [int(one[0]) for one in estimates(usage, resource, np.array([floor]), settings)]
    without_floor = [int(one[0]) for one in estimates(usage, resource, np.zeros(1, np.int64), settings)]
    interval = settings.confidence_interval_cpu if resource == "cpu" else settings.confidence_interval_memory
    sure = float(confidence(usage, interval)[0])
    caps = caps_of(container_policy(vpa.view.policy, container), resource, settings)
    fit, most = fit_of_vpa(state, vpa), 0
    share = 1.0 if fit is None else fit.cpu if resource == "cpu" else fit.memory
    held = state.floors.held.get((*vpa.key, container, resource))
    reasons = []
    shown = []
    for bound, name in _BOUNDS.items():
        say = partial(VOCABULARY.reason, subject=subject, resource=resource, bound=name)
        percentile = percentiles(settings)[resource != "cpu"][bound]
        reasons.append(
            say(
                "PercentileTaken",
                percentile=percentile,
                amount=text(int(base[bound, 0])),
                margin=settings.recommendation_margin_fraction,
                wide=text(int(wide[bound, 0])),
            )
        )
        before, amount = int(wide[bound, 0]), found[bound]
        if bound != TARGET:
            after = without_floor[bound]
            reasons.append(say("ConfidenceApplied", confidence=sure, before=text(before), after=text(after)))
            before = after
        if amount > before:
            reasons.append(say("MinimumApplied", before=text(before), least=text(floor)))
        if held is not None and amount < held.amount:
            reasons.append(_held(say, held, text(amount), text(held.amount)))
            amount = held.amount
        if fit is not None and share < 1.0:
            most = int(np.floor(amount * share)) if bound == TARGET else most
            if amount > most:
                reasons.append(_fitted(say, fit, text(amount), text(most)))
                amount = most
        capped, printed = _capped(say, amount, text(amount), caps)
        reasons += capped
        shown.append(printed)
    reasons.append(
        VOCABULARY.reason(
            "Recommended", subject, resource=resource, target=shown[0], lower=shown[1], upper=shown[2]
        )
    )
    return reasons


def _held(say: _Say, held: Floor, before: str, least: str) -> Reason:
    """Return what an OOM kill or a rollback raises the amount to."""
    return say(
        held.why,
        before=before,
        least=least,
        at=format_rfc3339(held.at),
        until=format_rfc3339(held.until),
    )


def _fitted(say: _Say, fit: Fit, before: str, after: str) -> Reason:
    """Return what the size of a new node lowers the amount to."""
    cpu, memory = milli_to_text(fit.size.cpu_milli), bytes_to_text(fit.size.memory_bytes)
    return say("FittedToNodes", before=before, after=after, cpu=cpu, memory=memory)


def _capped(say: _Say, amount: int, printed: str, caps: Caps) -> tuple[list[Reason], str]:
    """Return why the policy's limits change the amount, if they do, and the amount as it is recommended."""
    if amount < caps.least:
        return [say("CappedToMinimum", before=printed, bound_amount=str(caps.minimum))], caps.low
    if amount > caps.most and caps.most != NO_CAP:
        return [say("CappedToMaximum", before=printed, bound_amount=str(caps.maximum))], caps.high
    return [], printed
