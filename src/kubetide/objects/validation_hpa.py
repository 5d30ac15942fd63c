"""Rules of a HorizontalPodAutoscaler. Source: Kubernetes v1.36, pkg/apis/autoscaling/validation.

Scaling to zero is accepted as with the HPAScaleToZero gate on: with at least one Object or External
metric. Whether the controller does it is the controller's own gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubetide.objects.field_errors import (
    INVALID,
    FieldError,
    check_choice,
    check_selector,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TARGET_TYPES = ("AverageValue", "Utilization", "Value")
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
    if least == 0 and not any(metric.get("type") in {"Object", "External"} for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", detail))
    for index, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{index}]")
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction):
            errors += _rules(behavior[direction], f"spec.behavior.{direction}")
    return errors


def validate_target_group(obj: Json, old: Json | None) -> list[FieldError]:
    """Gives what is wrong with the target's apiVersion; a reference that was there before may stay."""
    ref = (obj.get("spec") or {}).get("scaleTargetRef") or {}
    version = ref.get("apiVersion") or ""
    if old is not None and ((old.get("spec") or {}).get("scaleTargetRef") or {}) == ref:
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
        value = ref.get(name) or ""
        if value in {".", ".."}:
            errors.append(invalid(f"{at}.{name}", value, f"may not be '{value}'"))
        errors += [
            invalid(f"{at}.{name}", value, f"may not contain '{char}'")
            for char in ("/", "%")
            if char in value
        ]
    return errors


def _metric(metric: Json, at: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    if not kind:
        return [required(f"{at}.type", "must specify a metric source type")]
    if kind not in _SOURCES:
        return [unsupported(f"{at}.type", kind, _SOURCES)]
    wanted = _SOURCES[kind]
    errors = [
        forbidden(f"{at}.{name}", "must populate the given metric source only")
        for name in _SOURCES.values()
        if name != wanted and metric.get(name) is not None
    ]
    source = metric.get(wanted)
    if source is None:
        return [*errors, required(f"{at}.{wanted}", "must populate information for the given metric source")]
    at = f"{at}.{wanted}"
    if kind in {"Resource", "ContainerResource"}:
        if kind == "ContainerResource" and not source.get("container"):
            errors.append(required(f"{at}.container", "must specify a container"))
        if not source.get("name"):
            errors.append(required(f"{at}.name", "must specify a resource name"))
    else:
        identifier = source.get("metric") or {}
        name = identifier.get("name") or ""
        if not name:
            errors.append(required(f"{at}.metric.name"))
        elif "/" in name or "%" in name:
            errors.append(
                invalid(f"{at}.metric.name", name, f"may not contain '{'/' if '/' in name else '%'}'")
            )
        errors += check_selector(f"{at}.metric.selector", identifier.get("selector"))
    if kind == "Object":
        errors += _target_ref(source.get("describedObject") or {}, f"{at}.describedObject")
    return errors + _target(source.get("target") or {}, f"{at}.target", kind)


def _target(target: Json, at: str, kind: str) -> list[FieldError]:
    """Checks a target: its type, positive values, and the one value that the source wants."""
    errors = check_choice(
        f"{at}.type", target.get("type"), _TARGET_TYPES, missing="must specify a metric target type"
    )
    value, average = target.get("value"), target.get("averageValue")
    utilization = target.get("averageUtilization")
    for name, amount in (("value", value), ("averageValue", average)):
        if amount is not None:
            errors += _positive(f"{at}.{name}", amount)
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{at}.averageUtilization", utilization, "must be greater than 0"))
    if kind in {"Resource", "ContainerResource"}:
        if utilization is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            errors.append(required(f"{at}.averageUtilization", detail))
        elif utilization is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            errors.append(forbidden(f"{at}.averageValue", detail))
    elif kind == "Pods":
        if average is None:
            errors.append(required(f"{at}.averageValue", "must specify a positive target averageValue"))
    elif value is None and average is None:
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{at}.averageValue", detail))
    elif kind == "External" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{at}.value", detail))
    return errors


def _positive(field: str, amount: Any) -> list[FieldError]:
    try:
        if Quantity.parse(amount).sign() > 0:
            return []
    except QuantityError as exc:
        return [FieldError(field, INVALID, amount, str(exc).partition(" is not a quantity: ")[2])]
    return [invalid(field, amount, "must be positive")]


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
        try:
            negative = Quantity.parse(tolerance).sign() < 0
            detail = "must be greater than or equal to 0"
        except QuantityError as exc:
            negative, detail = True, str(exc).partition(" is not a quantity: ")[2]
        if negative:
            errors.append(invalid(f"{at}.tolerance", tolerance, detail))
    policies = rules.get("policies") or []
    if not policies:
        errors.append(required(f"{at}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        place = f"{at}.policies[{index}]"
        errors += check_choice(f"{place}.type", policy.get("type"), ("Percent", "Pods"), missing="")
        value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
        if value <= 0:
            errors.append(invalid(f"{place}.value", value, "must be greater than zero"))
        if period <= 0:
            errors.append(invalid(f"{place}.periodSeconds", period, "must be greater than zero"))
        elif period > _MAX_PERIOD_SECONDS:
            detail = f"must be less than or equal to {_MAX_PERIOD_SECONDS}"
            errors.append(invalid(f"{place}.periodSeconds", period, detail))
    return errors
