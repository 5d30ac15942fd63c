"""Writes of an HPA's status: the fields that differ, and their merge patch."""

from __future__ import annotations

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.hpa import HpaStatus, MetricStatus, MetricValueStatus

_ATTRIBUTES = {
    "observedGeneration": "observed_generation",
    "lastScaleTime": "last_scale_time",
    "currentReplicas": "current_replicas",
    "desiredReplicas": "desired_replicas",
}

METRICS = "currentMetrics"


def changed_fields(before: HpaStatus, after: HpaStatus) -> tuple[str, ...]:
    """Return the names of the fields that differ, in patch order; an empty list equals an absent one."""
    found = []
    if before.observed_generation != after.observed_generation:
        found.append("observedGeneration")
    if before.last_scale_time != after.last_scale_time:
        found.append("lastScaleTime")
    if before.current_replicas != after.current_replicas:
        found.append("currentReplicas")
    if before.desired_replicas != after.desired_replicas:
        found.append("desiredReplicas")
    if (before.current_metrics or None) != after.current_metrics:
        found.append(METRICS)
    if (before.conditions or None) != after.conditions:
        found.append("conditions")
    return tuple(found)


def only_values(before: HpaStatus, after: HpaStatus, changes: tuple[str, ...]) -> bool:
    """Return whether both have the same metrics and differ in measured values only."""
    if changes != (METRICS,):
        return False
    old, new = before.current_metrics or (), after.current_metrics or ()
    return list(map(_without_value, old)) == list(map(_without_value, new))


def _without_value(metric: MetricStatus) -> MetricStatus:
    """Return the entry of a metric without what was measured."""
    for field in ("resource", "container_resource", "pods", "object", "external"):
        part = getattr(metric, field)
        if part is not None:
            return msgspec.structs.replace(
                metric, **{field: msgspec.structs.replace(part, current=MetricValueStatus())}
            )
    return metric


def patch_of(status: HpaStatus, fields: tuple[str, ...]) -> Json:
    """Return a merge patch of these fields; null removes a field."""
    patch: Json = {}
    for field in fields:
        if field == METRICS:
            metrics = status.current_metrics
            patch[field] = metrics and [_as_json(metric) for metric in metrics]
        elif field == "conditions":
            patch[field] = [msgspec.to_builtins(condition) for condition in status.conditions or ()]
        else:
            patch[field] = getattr(status, _ATTRIBUTES[field])
    return patch


def _as_json(metric: MetricStatus) -> Json:
    """Return a status as JSON says it."""
    found: Json
    if metric.resource is not None or metric.container_resource is not None:
        found = msgspec.to_builtins(metric)
        return found
    # ``to_builtins`` leaves the tuples of a selector. ``type`` is required: that of a metric that failed is empty.
    found = msgspec.json.decode(msgspec.json.encode(metric))
    return {"type": metric.type, **found}
