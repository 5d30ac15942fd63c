"""Rules of where a pod may run: tolerations, affinity, spreading.

Source: Kubernetes v1.36, pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetide.objects.field_errors import (
    FieldError,
    check_choice,
    check_selector,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubetide.units.names import dns1123_label_errors, label_key_errors, label_value_errors

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_placement(spec: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        errors += _toleration(toleration, f"{at}.tolerations[{index}]")
    errors += _affinity(spec.get("affinity") or {}, f"{at}.affinity")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place = f"{at}.topologySpreadConstraints[{index}]"
        errors += _spread(constraint, place)
        pair = (constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or "")
        if pair in seen:
            errors.append(
                duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
            )
        seen.add(pair)
    return errors


def _toleration(toleration: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        errors += [invalid(f"{at}.key", key, text) for text in label_key_errors(key)]
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{at}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{at}.effect", effect, detail))
    if operator in {"", "Equal"}:
        errors += [invalid(f"{at}.operator", value, text) for text in label_value_errors(value)]
    elif operator == "Exists":
        if value:
            errors.append(invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'"))
    else:
        errors.append(unsupported(f"{at}.operator", operator, _TOLERATION_OPERATORS))
    if effect and effect not in _EFFECTS:
        errors.append(unsupported(f"{at}.effect", effect, _EFFECTS))
    return errors


def _affinity(affinity: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    nodes = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    if nodes is not None:
        errors += check_node_terms(nodes, f"{at}.nodeAffinity.{_REQUIRED}")
    for part in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate((affinity.get(part) or {}).get(_REQUIRED) or ()):
            errors += _pod_term(term, f"{at}.{part}.{_REQUIRED}[{index}]")
    return errors


def check_node_terms(selector: Json, at: str) -> list[FieldError]:
    """Check a ``NodeSelector``."""
    field = f"{at}.nodeSelectorTerms"
    terms = selector.get("nodeSelectorTerms") or []
    errors = [] if terms else [required(field, "must have at least one node selector term")]
    for index, term in enumerate(terms):
        for place, expression in enumerate(term.get("matchExpressions") or ()):
            errors += _node_expression(expression, f"{field}[{index}].matchExpressions[{place}]")
    return errors


def _node_expression(expression: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator") or "", expression.get("values") or []
    if operator in {"In", "NotIn"}:
        if not values:
            errors.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{at}.values", detail))
    elif operator in {"Gt", "Lt"}:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{at}.values", detail))
    else:
        errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
    key = expression.get("key") or ""
    return errors + [invalid(f"{at}.key", key, text) for text in label_key_errors(key)]


def _pod_term(term: Json, at: str) -> list[FieldError]:
    errors = check_selector(f"{at}.labelSelector", term.get("labelSelector"))
    errors += check_selector(f"{at}.namespaceSelector", term.get("namespaceSelector"))
    for index, namespace in enumerate(term.get("namespaces") or ()):
        errors += [
            invalid(f"{at}.namespaces[{index}]", namespace, text) for text in dns1123_label_errors(namespace)
        ]
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(required(f"{at}.topologyKey", "can not be empty"))
    else:
        errors += [invalid(f"{at}.topologyKey", key, text) for text in label_key_errors(key)]
    return errors


def _spread(constraint: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    skew = constraint.get("maxSkew") or 0
    if skew <= 0:
        errors.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
    key = constraint.get("topologyKey") or ""
    if not key:
        errors.append(required(f"{at}.topologyKey", "can not be empty"))
    else:
        errors += [invalid(f"{at}.topologyKey", key, text) for text in label_key_errors(key)]
    when = constraint.get("whenUnsatisfiable") or ""
    if when not in _UNSATISFIABLE:
        errors.append(unsupported(f"{at}.whenUnsatisfiable", when, _UNSATISFIABLE))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            errors.append(invalid(f"{at}.minDomains", domains, "must be greater than 0"))
        if when != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            errors.append(invalid(f"{at}.minDomains", domains, detail))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        errors += check_choice(f"{at}.{name}", constraint.get(name), _POLICIES)
    return errors + check_selector(f"{at}.labelSelector", constraint.get("labelSelector"))
