"""Decisions of the loop, their outcomes, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kubetide.forecast.rows import NOTHING, Ahead, Came
from kubetide.horizontal.facts.views import CapacityView
from kubetide.horizontal.metrics.types import Known, MetricFailure, Proposal
from kubetide.horizontal.status.conditions import Note
from kubetide.horizontal.status.events import EventNote, status_not_written
from kubetide.horizontal.status.patches import patch_of
from kubetide.objects.base import Json
from kubetide.objects.hpa import HpaStatus, MetricStatus
from kubetide.objects.meta import Key
from kubetide.units.time import Instant


class ScaleWrite(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of a target's ``spec.replicas``.

    Attributes:
        namespace, name: The HPA that wants it.
        resource_version: The scale that the decision was made from; a precondition.
        unready: What would be desired without waiting for pods to be ready; None when nothing waits.
        ready: Pods that were ready then.
        costs: Names of pods and the deletion costs that they get first.
    """

    namespace: str
    name: str
    api_version: str
    kind: str
    target: str
    replicas: int
    resource_version: str
    costs: tuple[tuple[str, int], ...] = ()


class ScaleOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a write, and its time; ``error`` is empty on success. Retries of conflicts take time.

    ``withheld``: it was not sent, on purpose; nothing is remembered of it and nothing has failed.
    ``pending``: why the outcome is not known yet; it comes with a later tick (``LateScale``), or another write does.
    """

    namespace: str
    name: str
    at: Instant
    error: str = ""
    withheld: bool = False
    pending: str = ""


class LateScale(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a write that a tick before did not wait for: what it changed, and why."""

    namespace: str
    name: str
    at: Instant
    current: int
    desired: int
    why: str
    error: str = ""


class Computation(msgspec.Struct, frozen=True, array_like=True):
    """Labels of one metric computation, for the loop's own metrics."""

    metric_type: str
    action: str
    error: str


Grounds = tuple[Sequence[Proposal | MetricFailure], Sequence[Known]]
"""What the metrics of an HPA proposed, and what was known of them."""


class Verdict(msgspec.Struct, eq=False):
    """All findings about one HPA in one tick, before any write.

    Attributes:
        current: ``spec.replicas`` that was read; ``desired`` what it is to be.
        rescale: Whether a write is needed; ``why`` is what its event says.
        notes: Conditions in the order they are set.
        events: Before the status is written; ``late_events`` after it.
        stage: ``unread`` (no scale), ``waiting`` (not due), ``uncomputed`` (no proposal), or ``decided``.
        metrics: Entries of ``status.currentMetrics``.
        computations: For the loop's own metrics.
        error: What upstream's reconcile returns; ``error_label`` its class.
        first: Whether the HPA is seen for the first time.
        raw: The proposal to be remembered, None when metrics were not asked.
        slot: Where, -1 for a new slot.
        forget_zero: Whether the ScaledToZero condition goes.
        grounds: Proposals and what is known, by metric, for the explanation; None when metrics were not asked.
        stabilized: After stabilization, None when metrics were not asked.
        limit: Reason that ``ScalingLimited`` gives.
        fallback: Whether ``raw`` is what stands in for metrics that failed.
        unpaused: What would be desired without a pause; None when nothing was paused.
        adjusted: What options of other packages made of the number: their names, and the number after each;
            ``unadjusted`` is what would be desired without them.
        costs: Names of pods and the deletion costs that they are to get.
        load: In pods at full use, of HPAs with forecasts; None where no metric shows it.
        saturated: Whether CPU limits hide a part of it; ``rolling`` whether the target is being rolled out.
        beyond: What is proposed with the part that is hidden; None where nothing is added.
        headroom: What learned headroom proposes in place of the target; None where it is not used or changes nothing.
        reactive: What would be desired without the forecast; None where there is none.
        ahead: What is forecast.
        came: What has come of what was forecast.
        held_back: What would be desired if scale-downs did not hold, None when they do not or it is none.
    """

    key: Key
    current: int = 0
    desired: int = 0
    rescale: bool = False
    why: str = ""
    notes: tuple[Note, ...] = ()
    events: tuple[EventNote, ...] = ()
    late_events: tuple[EventNote, ...] = ()
    stage: str = "decided"
    metrics: tuple[MetricStatus, ...] | None = None
    computations: tuple[Computation, ...] = ()
    error: str = ""
    error_label: str = "none"
    first: bool = False
    raw: int | None = None
    slot: int = -1
    forget_zero: bool = False
    grounds: Callable[[], Grounds] | None = None
    stabilized: int | None = None
    limit: str = ""
    fallback: bool = False
    unpaused: int | None = None
    unready: int | None = None
    ready: int = 0
    unadjusted: int | None = None
    adjusted: tuple[tuple[str, int], ...] = ()
    costs: tuple[tuple[str, int], ...] = ()
    held_back: int | None = None
    load: float | None = None
    saturated: bool = False
    rolling: bool = False
    beyond: int | None = None
    headroom: int | None = None
    reactive: int | None = None
    ahead: Ahead = NOTHING
    came: Came | None = None

    @property
    def limited(self) -> int:
        """The replicas within policies and bounds, before holds and pauses."""
        proposals = (self.held_back, self.reactive, self.unready, self.unadjusted, self.unpaused)
        return next((number for number in proposals if number is not None), self.desired)


class Commands(msgspec.Struct, frozen=True, eq=False):
    """The result of ``decide`` at ``at``: writes to carry out, and their verdicts, ordered by HPA."""

    at: Instant
    writes: tuple[ScaleWrite, ...]
    verdicts: tuple[Verdict, ...]


class Settlement(msgspec.Struct, eq=False):
    """The writes and events of one HPA once the outcome is known.

    Attributes:
        status: The new status; ``changes`` names the fields of it that differ.
        action, error_label: Labels of the reconciliation.
        withheld: Whether a change of the target was decided and, on purpose, not written.
        pending: Why it is not known yet whether a change was written.
        desired: Replicas that the target is to have from now on, also for the desired-replicas gauge;
            None when the tick did not come to its end.
        held: Whether a change of nothing but measured values waits for its time to be written; ``status`` is
            the one that is there.
        kept: Whether the conditions are unchanged.
        nodes: What the node loop says of replicas without a node; None where all have one, or nothing is known.
        normal_end: Whether a failing status write becomes the error of the tick.
    """

    verdict: Verdict
    status: HpaStatus
    changes: tuple[str, ...]
    events: tuple[EventNote, ...]
    late_events: tuple[EventNote, ...]
    action: str = "none"
    error: str = ""
    error_label: str = "none"
    desired: int | None = None
    normal_end: bool = True
    withheld: bool = False
    pending: str = ""
    held: bool = False
    kept: bool = False
    nodes: CapacityView | None = None
    made: Json | None = None
    """The patch, once somebody has asked for it."""

    @property
    def patch(self) -> Json:
        """A merge patch of the status, empty if nothing changed; it is written and recorded."""
        if self.made is None:
            self.made = patch_of(self.status, self.changes)
        return self.made

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to write and no event."""
        return not (self.held or self.changes or self.events or self.late_events or self.verdict.rescale)


class Result(msgspec.Struct, frozen=True, eq=False):
    """The result of ``absorb``, ordered by HPA."""

    settlements: tuple[Settlement, ...]


class StatusPatch(msgspec.Struct, frozen=True):
    """The fields of an HPA's status that change."""

    namespace: str
    name: str
    status: Json


class HpaEvent(msgspec.Struct, frozen=True):
    """The events of one HPA in one tick."""

    namespace: str
    name: str
    events: tuple[EventNote, ...]


class ResultRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A result in a record: only changes and events.

    Attributes:
        held: HPAs whose status was not written although what was measured has changed.
    """

    statuses: tuple[StatusPatch, ...] = ()
    events: tuple[HpaEvent, ...] = ()
    held: tuple[Key, ...] = ()


def record_of(result: Result) -> ResultRecord:
    """Return the part of a result that a record stores."""
    settled = result.settlements
    return ResultRecord(
        statuses=tuple(StatusPatch(*one.verdict.key, one.patch) for one in settled if one.changes),
        events=tuple(
            HpaEvent(*one.verdict.key, one.events + one.late_events)
            for one in settled
            if one.events or one.late_events
        ),
        held=tuple(one.verdict.key for one in settled if one.held),
    )


def events_in_order(settlement: Settlement, status_error: str) -> tuple[EventNote, ...]:
    """Return the events of a tick, with the event of a failed status write at its place."""
    failed = (status_not_written(status_error),) if status_error else ()
    return settlement.events + failed + settlement.late_events


def error_of(settlement: Settlement, status_error: str) -> tuple[str, str]:
    """Return the error of this HPA's tick, and its label."""
    if status_error and settlement.normal_end:
        return f"failed to update status for {settlement.verdict.key[1]}: {status_error}", "internal"
    return settlement.error, settlement.error_label
