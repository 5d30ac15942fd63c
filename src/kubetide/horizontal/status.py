"""The status of an HPA: how the next one is made of the last, and what of it has to be written."""

from __future__ import annotations

import msgspec

from kubetide.horizontal.decision import Verdict
from kubetide.objects.base import Json
from kubetide.objects.hpa import HpaStatus, MetricStatus
from kubetide.objects.meta import Condition


def action_of(before: int, after: int) -> str:
    """Gives the label for a change of the number of replicas."""
    if after == before:
        return "none"
    return "scale_up" if after > before else "scale_down"


def changed_status(
    before: HpaStatus,
    verdict: Verdict,
    conditions: tuple[Condition, ...] | None,
    *,
    rescaled_at: str | None,
    settled: bool,
) -> HpaStatus:
    """Gives the new status.

    Of an HPA that is not due nothing changes, without a scale only the conditions. Else the status is made anew, without
    ``observedGeneration`` as upstream does it; the desired number changes only in a tick that
    went to its end. ``currentReplicas`` is ``spec.replicas`` as it was read.
    """
    if verdict.stage == "waiting":
        return before
    if verdict.stage == "unread":
        return msgspec.structs.replace(before, conditions=conditions)
    return HpaStatus(
        last_scale_time=rescaled_at or before.last_scale_time,
        current_replicas=verdict.current,
        desired_replicas=verdict.desired if settled else before.desired_replicas,
        current_metrics=verdict.metrics or None,
        conditions=conditions,
    )


def changed_fields(before: HpaStatus, after: HpaStatus) -> Json:
    """Gives a merge patch of the status; null takes a field away."""
    changes: Json = {}
    if before.observed_generation != after.observed_generation:
        changes["observedGeneration"] = after.observed_generation
    if before.last_scale_time != after.last_scale_time:
        changes["lastScaleTime"] = after.last_scale_time
    if before.current_replicas != after.current_replicas:
        changes["currentReplicas"] = after.current_replicas
    if before.desired_replicas != after.desired_replicas:
        changes["desiredReplicas"] = after.desired_replicas
    if (before.current_metrics or None) != after.current_metrics:
        metrics = after.current_metrics
        # ``type`` is required: the entry of a metric that failed has an empty one.
        changes["currentMetrics"] = metrics and [{"type": m.type, **_as_json(m)} for m in metrics]
    if (before.conditions or None) != after.conditions:
        changes["conditions"] = [msgspec.to_builtins(condition) for condition in after.conditions or ()]
    return changes


def _as_json(metric: MetricStatus) -> Json:
    """Gives a status as JSON says it; ``to_builtins`` alone leaves the tuples of a selector."""
    found: Json = msgspec.json.decode(msgspec.json.encode(metric))
    return found
