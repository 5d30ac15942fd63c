"""autoscaling/v1 HorizontalPodAutoscaler, and how it is the same object as a v2 one.

What v1 has no field for travels in annotations. Source: Kubernetes v1.36, pkg/apis/autoscaling/v1,
conversion.go; the annotation ``behavior`` has the member names of upstream's internal type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import field

from kubetide.objects.base import ApiStruct, Json
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.meta import ApiObject
from kubetide.units.quantity import Quantity, QuantityError

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_TOLERANCES = (
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)
_ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, *_TOLERANCES)


class HpaV1Spec(ApiStruct):
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    min_replicas: int | None = None
    max_replicas: int = 0
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")


class HpaV1Status(ApiStruct):
    observed_generation: int | None = None
    last_scale_time: str | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_cpu_utilization_percentage: int | None = field(
        default=None, name="currentCPUUtilizationPercentage"
    )


class HorizontalPodAutoscalerV1(ApiObject):
    spec: HpaV1Spec = field(default_factory=HpaV1Spec)
    status: HpaV1Status = field(default_factory=HpaV1Status)


_ORDER = (
    *("type", "status", "lastTransitionTime", "reason", "message"),
    *("scaleUp", "scaleDown", "stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"),
    *("value", "periodSeconds"),
)
"""Members of conditions and of behavior."""


def without_v1_annotations(annotations: Mapping[str, Any]) -> Json:
    """Return annotations without those in which v1 writes what it has no field for: no other version reads or keeps them."""
    return {name: value for name, value in annotations.items() if name not in _ANNOTATIONS}


def v1_of(hpa: Json) -> Json:
    """Return a v2 autoscaler as v1 shows it."""
    spec, status = hpa.get("spec") or {}, hpa.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    annotations = without_v1_annotations((hpa.get("metadata") or {}).get("annotations") or {})
    others = [_to_v1(metric, "target") for metric in metrics if _cpu_utilization(metric) is None]
    if others:
        annotations[METRICS] = _dumped(others)
    if current:
        annotations[CURRENT_METRICS] = _dumped([_to_v1(metric, "current") for metric in current])
    if status.get("conditions"):
        annotations[CONDITIONS] = _dumped(_in_order(status["conditions"]))
    if spec.get("behavior") is not None:
        annotations[BEHAVIOR] = _dumped(_renamed(_in_order(spec["behavior"]), str.upper))
    v1_spec = {key: value for key, value in spec.items() if key not in {"metrics", "behavior"}}
    v1_status = {key: value for key, value in status.items() if key not in {"currentMetrics", "conditions"}}
    target = next(filter(None, map(_cpu_utilization, metrics)), None)
    if target is not None:
        v1_spec["targetCPUUtilizationPercentage"] = target
    used = next((_cpu_used(metric) for metric in current if _cpu_used(metric) is not None), None)
    if used is not None:
        v1_status["currentCPUUtilizationPercentage"] = used
    return _assembled(hpa, "autoscaling/v1", annotations, v1_spec, v1_status)


def v2_of(hpa: Json) -> Json:
    """Return a v1 autoscaler as v2 shows it; annotations that cannot be read are dropped."""
    spec, status = dict(hpa.get("spec") or {}), dict(hpa.get("status") or {})
    annotations = dict((hpa.get("metadata") or {}).get("annotations") or {})
    said = {name: _loaded(annotations.pop(name, None)) for name in _ANNOTATIONS}
    metrics = [metric_of_v1(metric, "target") for metric in _objects(said[METRICS])]
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        value = {"type": "Utilization", "averageUtilization": target}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": value}})
    if metrics:
        spec["metrics"] = metrics
    if isinstance(said[BEHAVIOR], dict):
        spec["behavior"] = _renamed(said[BEHAVIOR], str.lower)
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = [metric_of_v1(metric, "current") for metric in _objects(said[CURRENT_METRICS])]
    if not current and used is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    if current:
        status["currentMetrics"] = current
    conditions = _objects(said[CONDITIONS])
    if conditions:
        status["conditions"] = conditions
    return _assembled(hpa, "autoscaling/v2", annotations, spec, status)


def _assembled(hpa: Json, api_version: str, annotations: Json, spec: Json, status: Json) -> Json:
    result = {**hpa, "apiVersion": api_version}
    meta = {key: value for key, value in (hpa.get("metadata") or {}).items() if key != "annotations"}
    if annotations:
        meta["annotations"] = annotations
    parts = {"metadata": meta, "spec": spec, "status": status}
    return {**result, **{name: part for name, part in parts.items() if part or name in hpa}}


def _cpu_utilization(metric: Json) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    found: int | None = (resource.get("target") or {}).get("averageUtilization")
    return found


def _cpu_used(metric: Json) -> int | None:
    resource = metric.get("resource") or {}
    found: int | None = (
        (resource.get("current") or {}).get("averageUtilization") if resource.get("name") == "cpu" else None
    )
    return found


# ── The metrics, of which v1 has another shape ──────────────────────────────────────────────────

SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _value_names(source: str, prefix: str) -> dict[str, str]:
    """Name in v2 to names in v1 of a metric's values."""
    if source == "object":
        return {"value": f"{prefix}Value", "averageValue": "averageValue"}
    if source == "external":
        return {"value": f"{prefix}Value", "averageValue": f"{prefix}AverageValue"}
    return {
        "averageUtilization": f"{prefix}AverageUtilization",
        "averageValue": f"{prefix}AverageValue",
    }


def _to_v1(metric: Json, part: str) -> Json:
    source = SOURCES.get(metric.get("type") or "", "")
    said = metric.get(source) or {}
    result: Json = {key: said[key] for key in ("name", "container") if key in said}
    if source == "object":
        result["target"] = said.get("describedObject") or {}
    identity = said.get("metric")
    if identity is not None:
        result["metricName"] = identity.get("name", "")
        if identity.get("selector") is not None:
            result["metricSelector" if source == "external" else "selector"] = identity["selector"]
    values = said.get(part) or {}
    for name, v1_name in _value_names(source, part).items():
        if values.get(name) is not None:
            result[v1_name] = values[name]
    if source == "object" or (source == "external" and part == "current"):
        result.setdefault(f"{part}Value", "0")  # no pointer in v1, so it is always there
    return {"type": metric.get("type"), source: result} if source else dict(metric)


def metric_of_v1(metric: Json, part: str) -> Json:
    """Return a metric in v2's shape.

    Args:
        metric: As v1's annotations and v2beta1 write it.
        part: ``target`` in a spec, ``current`` in a status.
    """
    source = SOURCES.get(metric.get("type") or "", "")
    said = metric.get(source) or {}
    result: Json = {key: said[key] for key in ("name", "container") if key in said}
    if source == "object":
        result["describedObject"] = said.get("target") or {}
    if source in {"pods", "object", "external"}:
        identity = {"name": said.get("metricName", "")}
        selector = said.get("metricSelector" if source == "external" else "selector")
        if selector is not None:
            identity["selector"] = selector
        result["metric"] = identity
    values: Json = {}
    for name, v1_name in _value_names(source, part).items():
        if said.get(v1_name) is not None:
            values[name] = said[v1_name]
    if part == "target":
        if "averageUtilization" in values:
            kind = "Utilization"
        else:
            by_average = "averageValue" in values and (source != "external" or "value" not in values)
            kind = "AverageValue" if by_average else "Value"
        values = {"type": kind, **values}
    if (
        "averageValue" in values
        and (part == "current" or source == "object")
        and _is_zero(values.get("value"))
    ):
        # A value that v1 cannot leave out; with an average beside it, the average is meant.
        values.pop("value", None)
    result[part] = values
    return {"type": metric.get("type"), source: result} if source else dict(metric)


def _is_zero(value: Any) -> bool:
    try:
        return value is not None and Quantity.parse(value).sign() == 0
    except QuantityError:
        return False


def _in_order(value: Any) -> Any:
    """Return JSON with its members in the order of upstream's types, in which annotations are written."""
    if isinstance(value, dict):
        known = [name for name in _ORDER if name in value]
        return {name: _in_order(value[name]) for name in (*known, *sorted(value.keys() - set(known)))}
    if isinstance(value, list):
        return [_in_order(item) for item in value]
    return value


def _renamed(value: Any, case: Callable[[str], str]) -> Any:
    """Return JSON with the first letter of every member's name in upper or lower case."""
    if isinstance(value, dict):
        return {case(key[:1]) + key[1:]: _renamed(item, case) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, case) for item in value]
    return value


def _dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _loaded(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
