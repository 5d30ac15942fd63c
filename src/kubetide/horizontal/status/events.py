"""The events that the loop emits on an HPA. Source: horizontal controller v1.36."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

COMPONENT = "horizontal-pod-autoscaler"
NORMAL: Final = "Normal"
WARNING: Final = "Warning"

ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"
ALL_BELOW_TARGET = "All metrics below target"


class EventNote(msgspec.Struct, frozen=True, array_like=True):
    """An event before it has a name and a time."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def rescaled(replicas: int, why: str) -> EventNote:
    return EventNote(NORMAL, "SuccessfulRescale", f"New size: {replicas}; reason: {why}")


def rescale_failed(replicas: int, why: str, problem: str) -> EventNote:
    return EventNote(WARNING, "FailedRescale", f"New size: {replicas}; reason: {why}; error: {problem}")


def scale_unreadable(problem: str) -> EventNote:
    return EventNote(WARNING, "FailedGetScale", problem)


def metrics_failed(problem: str) -> EventNote:
    return EventNote(WARNING, "FailedComputeMetricsReplicas", problem)


def status_not_written(problem: str) -> EventNote:
    return EventNote(WARNING, "FailedUpdateStatus", problem)
