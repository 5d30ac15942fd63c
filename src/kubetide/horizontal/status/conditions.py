"""The conditions of an HPA: their texts, and how a list of them changes.

Source: horizontal controller v1.36. The transition time changes only when the *status* of a
condition flips; new conditions go to the end; none but ``ScaledToZero`` is ever taken away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from kubetide.horizontal.facts.views import CapacityView
from kubetide.objects.meta import Condition
from kubetide.units.lists import counted
from kubetide.units.time import Instant, format_rfc3339

ABLE, ACTIVE, LIMITED, SCALED_TO_ZERO = "AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"


class Note(NamedTuple):
    """A condition without its time."""

    type: str
    status: str
    reason: str
    message: str


GOT_SCALE = Note(
    ABLE, "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"
)
READY_FOR_NEW_SCALE = Note(ABLE, "True", "ReadyForNewScale", "recommended size matches current size")
SCALE_DOWN_STABILIZED = Note(
    ABLE,
    "True",
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
SCALE_UP_STABILIZED = Note(
    ABLE,
    "True",
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
SCALING_DISABLED = Note(
    ACTIVE, "False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"
)
INVALID_BOUNDS = "InvalidBounds"
SELECTOR_MISSING = Note(ACTIVE, "False", "InvalidSelector", "the HPA target's scale is missing a selector")
WENT_TO_ZERO = Note(SCALED_TO_ZERO, "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
STAYED_ABOVE_ZERO = Note(
    SCALED_TO_ZERO, "False", "NotScaledToZero", "the HPA controller did not scale the workload to zero"
)

_LIMIT_TEXTS = {
    "DesiredWithinRange": "the desired count is within the acceptable range",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
}
_LIMIT_NOTES = {
    (reason, limited): Note(LIMITED, "True" if limited else "False", reason, text)
    for reason, text in _LIMIT_TEXTS.items()
    for limited in (False, True)
}


def scaling_limited(reason: str, *, limited: bool) -> Note:
    return _LIMIT_NOTES[reason, limited]


@lru_cache(maxsize=1024)
def valid_metric(metric: str) -> Note:
    text = f"the HPA was able to successfully calculate a replica count from {metric}"
    return Note(ACTIVE, "True", "ValidMetricFound", text)


def invalid_metric(reason: str, problem: str) -> Note:
    return Note(ACTIVE, "False", reason, f"the HPA was unable to compute the replica count: {problem}")


def not_active(reason: str, text: str) -> Note:
    return Note(ACTIVE, "False", reason, text)


def scale_unreadable(problem: str) -> Note:
    text = f"the HPA controller was unable to get the target's current scale: {problem}"
    return Note(ABLE, "False", "FailedGetScale", text)


def without_nodes(notes: Sequence[Note], nodes: CapacityView | None) -> Sequence[Note]:
    """Return the notes with what no node group takes in place of a limit of the HPA itself; the same ones where there is none.

    What an annotation limits stays: somebody asked for that.
    """
    if nodes is None or not nodes.refused:
        return notes
    text = (
        f"no node for {counted(nodes.missing, 'replica')} (there or to come), and no node group takes "
        f"{nodes.refused} of them: {nodes.detail}"
    )
    ours = Note(LIMITED, "True", "NoNodesForReplicas", text)
    return [ours if note.type == LIMITED and note.reason in _LIMIT_TEXTS else note for note in notes]


def paused(desired: int) -> Note:
    text = f"scaling to {desired} is paused by the annotation horizontal.kubetide.io/pause"
    return Note(LIMITED, "True", "Paused", text)


def adjusted(name: str, replicas: int) -> Note:
    text = f"the number is {replicas} by the annotation horizontal.kubetide.io/{name}"
    return Note(LIMITED, "True", "AdjustedByOption", text)


def held_until_ready(desired: int, ready: int, current: int) -> Note:
    text = (
        f"scaling to {desired} waits until the pods of the last scale-up are ready ({ready} of {current} are), by the "
        "annotation horizontal.kubetide.io/hold-until-ready"
    )
    return Note(LIMITED, "True", "HeldUntilReady", text)


def fallen_back(replicas: int, problem: str) -> Note:
    text = f"falling back to {replicas} by the annotation horizontal.kubetide.io/fallback: {problem}"
    return Note(ACTIVE, "True", "FallbackInUse", text)


def rescaled(replicas: int) -> Note:
    text = f"the HPA controller was able to update the target scale to {replicas}"
    return Note(ABLE, "True", "SucceededRescale", text)


def rescale_failed(problem: str) -> Note:
    text = f"the HPA controller was unable to update the target scale: {problem}"
    return Note(ABLE, "False", "FailedUpdateScale", text)


def with_notes(
    conditions: tuple[Condition, ...] | None, notes: Sequence[Note], now: Instant
) -> tuple[Condition, ...] | None:
    """Return the conditions after setting the notes one by one, now; the same objects if nothing changed."""
    held = {condition.type: condition for condition in conditions or ()}
    if conditions and _hold_already(held, notes):
        return conditions
    for note in notes:
        old = held.get(note.type)
        if old is not None and (old.status, old.reason, old.message) == note[1:]:
            continue
        held[note.type] = Condition(
            type=note.type,
            status=note.status,
            reason=note.reason,
            message=note.message,
            last_transition_time=old.last_transition_time
            if old is not None and old.status == note.status
            else format_rfc3339(now),
        )
    return tuple(held.values()) or None


def _hold_already(held: Mapping[str, Condition], notes: Sequence[Note]) -> bool:
    """Return whether setting the notes one by one ends where it began, without a flip on the way."""
    last = {}
    for note in notes:
        old = held.get(note.type)
        if old is None or old.status != note.status:
            return False
        last[note.type] = old.reason == note.reason and old.message == note.message
    return all(last.values())


def without(conditions: tuple[Condition, ...] | None, kind: str) -> tuple[Condition, ...] | None:
    """Return the conditions without one type."""
    return tuple(condition for condition in conditions or () if condition.type != kind) or None


def condition_status(conditions: tuple[Condition, ...] | None, kind: str) -> str:
    """Return the status of a condition, empty without the condition."""
    return next((condition.status for condition in conditions or () if condition.type == kind), "")
