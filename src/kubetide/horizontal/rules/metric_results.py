"""The results of one HPA's metrics: a proposal or a failure each, and the number that they propose together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from kubetide.horizontal.decision import Computation, Grounds
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.memory import OptionMemory
from kubetide.horizontal.metrics.registry import propose
from kubetide.horizontal.metrics.types import Known, MetricFailure, Proposal
from kubetide.horizontal.options.fallback import fallback_proposal
from kubetide.horizontal.rules.metric_facts import known_of
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say
from kubetide.horizontal.status import events
from kubetide.horizontal.status.status import action_of
from kubetide.objects.hpa import MetricStatus
from kubetide.units.time import Instant

_NO_MEMORY = OptionMemory()
_NO_STATUS = MetricStatus()  # upstream keeps an entry with an empty type for a metric that failed


class Problem(NamedTuple):
    """Why no number of replicas can be computed.

    Attributes:
        text: As the error says it.
        note: As the condition ScalingActive says it.
        event: What is said beside the event that all problems have.
    """

    text: str
    note: say.Note
    event: events.EventNote | None = None


def inactive(reason: str, text: str) -> Problem:
    """Return a problem that condition and event name by the same reason."""
    return Problem(text, say.not_active(reason, text), events.EventNote(events.WARNING, reason, text))


class Proposed(msgspec.Struct, frozen=True):
    """The number that all metrics together propose.

    Attributes:
        why: As the event of a rescale says it.
        note: As the condition ScalingActive says it.
        fallback: Whether it is what stands in for metrics that failed.
        load: In pods at full use, of HPAs with forecasts; None where no metric shows it.
        saturated: Whether CPU limits hide a part of it; ``rolling`` whether the target is being rolled out.
        beyond: The number with the part that is hidden; None where nothing is added.
        headroom: The number by learned headroom; None where that is not used or changes nothing.
    """

    replicas: int
    why: str
    note: say.Note
    fallback: bool = False
    load: float | None = None
    saturated: bool = False
    rolling: bool = False
    beyond: int | None = None
    headroom: int | None = None


class Measured(msgspec.Struct, frozen=True):
    """The proposals and failures of the metrics, in order of the spec.

    Attributes:
        known: What is known of each.
        statuses: Entries of ``status.currentMetrics``.
        computations: For the loop's own metrics.
        failures: Those of the proposals that propose nothing.
    """

    proposals: Sequence[Proposal | MetricFailure]
    known: Sequence[Known]
    statuses: tuple[MetricStatus, ...]
    computations: tuple[Computation, ...]
    failures: Sequence[MetricFailure]

    @property
    def error(self) -> str:
        """The error that upstream returns if any metric failed, else empty."""
        failures = self.failures
        if not failures:
            return ""
        counts = f"{len(failures)} invalid out of {len(self.proposals)}"
        return f"invalid metrics ({counts}), first error is: {failures[0].prefix}{failures[0].text}"

    def grounds(self) -> Grounds:
        """Return proposals and metric facts, for the explanation."""
        return self.proposals, self.known

    def largest(self) -> tuple[int, str]:
        """Return the largest proposal and its metric's name; 0 counts as none."""
        best, name = 0, ""
        for one in self.proposals:
            if isinstance(one, Proposal) and (best == 0 or one.replicas > best):
                best, name = one.replicas, one.name
        return best, name


@lru_cache(maxsize=64)
def computation(metric_type: str, action: str) -> Computation:
    """Return the labels of a successful computation."""
    return Computation(metric_type, action, "none")


def why_of(metric: str, proposal: int, current: int) -> str:
    """Return the text for the event of a rescale, by the proposal before stabilization and limits."""
    if proposal == current:
        return ""
    return f"{metric} above target" if proposal > current else events.ALL_BELOW_TARGET


def measure(state: State, spec: Autoscaler, scale: ScaleView, now: Instant) -> Measured:
    """Return the proposal or failure of each metric of the HPA."""
    before = state.statuses[spec.key].current_replicas
    known = [known_of(state, spec, metric, scale, now) for metric in spec.metrics]
    proposals, statuses, computations, failures = [], [], [], list[MetricFailure]()
    for metric, seen in zip(spec.metrics, known, strict=True):
        found = propose(metric, seen, scale.spec_replicas, spec.tolerance)
        proposals.append(found)
        if isinstance(found, MetricFailure):
            failures.append(found)
            statuses.append(_NO_STATUS)
            computations.append(Computation(metric.type, "none", found.error_label))
        else:
            statuses.append(found.status)
            computations.append(computation(metric.type, action_of(before, found.replicas)))
    return Measured(proposals, known, tuple(statuses), tuple(computations), failures)


def proposed_by(measured: Measured, state: State, spec: Autoscaler, current: int) -> Proposed | Problem:
    """Return the largest proposal, or the fallback; if metrics failed, the others do not scale down."""
    failures = measured.failures
    best, name = measured.largest()
    if not failures or (len(failures) < len(spec.metrics) and best >= current):
        best = max(best, 0)
        return Proposed(best, why_of(name, best, current), say.valid_metric(name))
    first = failures[0]
    last_good = state.options.get(spec.key, _NO_MEMORY).last_good
    instead = fallback_proposal(spec.options.fallback, current, last_good)
    if instead is None:
        return Problem(measured.error, say.invalid_metric(first.reason, first.text))
    # Never less than those that answered want.
    found = max(instead, best)
    return Proposed(found, f"fallback to {found}", say.fallen_back(found, first.text), fallback=True)
