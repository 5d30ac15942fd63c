"""Rules of a HorizontalPodAutoscaler. Source: Kubernetes v1.36, pkg/apis/autoscaling/validation.

Scaling to zero is accepted as with the HPAScaleToZero gate on: with at least one Object or External
metric. Whether the controller does it is the controller's own gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubetide.embedded.apiserver.rules.resources import container_resource_errors
from kubetide.objects.field_errors import (
    INVALID,
    FieldError,
    check_choice,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubetide.units.names import dns1123_label_errors
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""In upstream's order: of several sources in one metric only the first is looked into."""
_TARGET_TYPES = ("AverageValue", "Utilization", "Value")
_POLICY_TYPES = ("Percent", "Pods")
_MAX_WINDOW_SECONDS = 3600
_MAX_PERIOD_SECONDS = 1800


def validate_hpa(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    metrics = spec.get("metrics") or []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors: list[FieldError] = []
    if least is not None and least < 0:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 0"))
    if most == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    errors += _target_ref(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    for index, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in {"Object", "External"} for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", detail))
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction):
            errors += _rules(behavior[direction], f"spec.behavior.{direction}")
    return errors


def validate_target_group(obj: Json, old: Json | None) -> list[FieldError]:
    """Return what is wrong with the target's apiVersion; one that was there before, of the same kind, may stay."""
    ref = (obj.get("spec") or {}).get("scaleTargetRef") or {}
    version = ref.get("apiVersion") or ""
    before = {} if old is None else (old.get("spec") or {}).get("scaleTargetRef") or {}
    if old is not None and all(before.get(name) == ref.get(name) for name in ("apiVersion", "kind")):
        return []
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
    elif "/" in version or ref.get("kind") == "ReplicationController":
        return []
    else:
        detail = "apiVersion must specify API group"
    return [invalid("spec.scaleTargetRef.apiVersion", version, detail)]


def _target_ref(ref: Json, at: str) -> list[FieldError]:
    errors = [required(f"{at}.{name}") for name in ("kind", "name") if not ref.get(name)]
    for name in ("kind", "name"):
        errors += _path_segment(f"{at}.{name}", ref.get(name) or "")
    return errors


def _path_segment(field: str, value: str) -> list[FieldError]:
    """Check a name that becomes a part of a request's path. Source: apimachinery, pkg/api/validation/path."""
    if value in {".", ".."}:
        return [invalid(field, value, f"may not be '{value}'")]
    return [invalid(field, value, f"may not contain '{char}'") for char in ("/", "%") if char in value]


def _metric(metric: Json, at: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    if kind not in _SOURCES:
        missing = [] if kind else [required(f"{at}.type", "must specify a metric source type")]
        return [*missing, unsupported(f"{at}.type", kind, _SOURCES)]
    expected = _SOURCES[kind]
    given = [name for name in _SOURCES.values() if metric.get(name) is not None]
    errors = []
    if expected not in given:
        detail = "must populate information for the given metric source"
        errors.append(required(f"{at}.{expected}", detail))
    if len(given) > 1:
        detail = "must populate the given metric source only"
        errors += [forbidden(f"{at}.{name}", detail) for name in given if name != expected]
    for name in given[:1]:
        errors += _source(metric[name], f"{at}.{name}", name)
    return errors


def _source(source: Json, at: str, kind: str) -> list[FieldError]:
    """Check what a metric is and its target; upstream leaves the selector of a metric to who reads it."""
    errors = []
    if kind in {"resource", "containerResource"}:
        name = source.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name", "must specify a resource name"))
        if kind == "containerResource":
            errors += container_resource_errors(name, f"{at}.name") if name else []
            container = source.get("container") or ""
            if not container:
                errors.append(required(f"{at}.container", "must specify a container"))
            else:
                errors += [
                    invalid(f"{at}.container", container, text) for text in dns1123_label_errors(container)
                ]
    else:
        if kind == "object":
            about = source.get("describedObject") or {}
            errors += _target_ref(about, f"{at}.describedObject")
            version = about.get("apiVersion") or ""
            if version.count("/") > 1:
                detail = f"unexpected GroupVersion string: {version}"
                errors.append(invalid(f"{at}.describedObject.apiVersion", version, detail))
        name = (source.get("metric") or {}).get("name") or ""
        if not name:
            errors.append(required(f"{at}.metric.name", "must specify a metric name"))
        errors += _path_segment(f"{at}.metric.name", name)
    return errors + _target(source.get("target") or {}, f"{at}.target", kind)


def _target(target: Json, at: str, kind: str) -> list[FieldError]:
    """Check a target: its type, positive values, and the one value that the source wants."""
    errors = []
    stated = target.get("type") or ""
    if not stated:
        errors.append(required(f"{at}.type", "must specify a metric target type"))
    if stated not in _TARGET_TYPES:
        errors.append(invalid(f"{at}.type", stated, "must be either Utilization, Value, or AverageValue"))
    value, average = target.get("value"), target.get("averageValue")
    utilization = target.get("averageUtilization")
    for name, amount in (("value", value), ("averageValue", average)):
        if amount is not None:
            errors += _amount(f"{at}.{name}", amount, least=1, detail="must be positive")
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{at}.averageUtilization", utilization, "must be greater than 0"))
    if kind in {"resource", "containerResource"}:
        if utilization is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            errors.append(required(f"{at}.averageUtilization", detail))
        elif utilization is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            errors.append(forbidden(f"{at}.averageValue", detail))
    elif kind == "pods":
        if average is None:
            errors.append(required(f"{at}.averageValue", "must specify a positive target averageValue"))
    elif value is None and average is None:
        detail = "must set either a target value or averageValue"
        if kind == "external":
            detail = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{at}.averageValue", detail))
    elif kind == "external" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{at}.value", detail))
    return errors


def _amount(field: str, amount: Any, *, least: int, detail: str) -> list[FieldError]:
    """Check the sign of a quantity; the error quotes it in its canonical form, as upstream's does."""
    try:
        quantity = Quantity.parse(amount)
    except QuantityError as exc:
        return [FieldError(field, INVALID, amount, str(exc).partition(" is not a quantity: ")[2])]
    return [] if quantity.sign() >= least else [invalid(field, str(quantity), detail)]


def _rules(rules: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errors.append(
            invalid(f"{at}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
        )
    elif window is not None and window > _MAX_WINDOW_SECONDS:
        detail = f"must be less than or equal to {_MAX_WINDOW_SECONDS}"
        errors.append(invalid(f"{at}.stabilizationWindowSeconds", window, detail))
    errors += check_choice(f"{at}.selectPolicy", rules.get("selectPolicy"), ("Disabled", "Max", "Min"))
    tolerance = rules.get("tolerance")
    if tolerance is not None:
        detail = "must be greater than or equal to 0"
        errors += _amount(f"{at}.tolerance", tolerance, least=0, detail=detail)
    policies = rules.get("policies") or []
    if not policies:
        errors.append(required(f"{at}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        place = f"{at}.policies[{index}]"
        stated = policy.get("type") or ""
        if stated not in _POLICY_TYPES:
            errors.append(unsupported(f"{place}.type", stated, _POLICY_TYPES))
        value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
        if value <= 0:
            errors.append(invalid(f"{place}.value", value, "must be greater than zero"))
        if period <= 0:
            errors.append(invalid(f"{place}.periodSeconds", period, "must be greater than zero"))
        elif period > _MAX_PERIOD_SECONDS:
            detail = f"must be less than or equal to {_MAX_PERIOD_SECONDS}"
            errors.append(invalid(f"{place}.periodSeconds", period, detail))
    return errors
