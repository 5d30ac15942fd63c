"""The status of a ScaledObject. Source: KEDA 2.21, apis/keda/v1alpha1/scaledobject_types and condition_types."""

from __future__ import annotations

from kubetide.elastic.keda.fallback import Failures
from kubetide.elastic.keda.hpas import resource_names
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import Answer
from kubetide.elastic.keda.trigger_health import fallback_condition
from kubetide.objects.base import Json
from kubetide.objects.scaled_objects import (
    ACTIVE,
    FORCED_ACTIVE,
    INACTIVE,
    READY,
    RESTS,
    Said,
    conditions,
    failing,
    faulty,
)
from kubetide.units.time import Instant, format_rfc3339


def status_of(
    source: Source,
    answer: Answer | None,
    problems: tuple[str, ...],
    last: Instant | None,
    failures: Failures,
    *,
    rests: bool,
) -> Json:
    """Return the status as a patch.

    Args:
        problems: Why the object is not followed, or not fully.
        last: When there was work.
        failures: Of the metrics of an object with a fallback.
        rests: Whether the target keeps its replicas for the cooldown.
    """
    return {
        "externalMetricNames": [one.metric for one in answer.metrics if one.target is not None]
        if answer is not None
        else None,
        "resourceMetricNames": resource_names(source) or None,
        "hpaName": source.hpa,
        "lastActiveTime": None if last is None else format_rfc3339(last),
        "pausedReplicaCount": source.paused_at,
        "conditions": conditions(
            _ready(source, answer, problems),
            _active(source, answer, rests=rests),
            paused=source.paused or source.holds_in or source.holds_out,
            fallback=fallback_condition(source, failures),
        ),
    }


def _active(source: Source, answer: Answer | None, *, rests: bool) -> Said:
    if rests:
        return RESTS
    if answer is None or source.paused:
        return INACTIVE
    if source.forced:
        return FORCED_ACTIVE
    return ACTIVE if answer.active else INACTIVE


def _ready(source: Source, answer: Answer | None, problems: tuple[str, ...]) -> Said:
    said = "; ".join(problems)
    if not problems:
        return READY
    if answer is None or answer.unread:
        return faulty(said)
    if not answer.error or (source.fallback is not None and not answer.active):
        return READY  # the fallback stands for what fails, or is about to
    return failing(said, in_part=answer.active)
