"""Rules of StatefulSets. Source: Kubernetes v1.36, pkg/apis/apps/validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetide.embedded.apiserver.rules.workload import validate_workload
from kubetide.objects.field_errors import (
    FieldError,
    check_int_or_percent,
    check_not_negative,
    forbidden,
    invalid,
    is_zero_count,
    required,
)
from kubetide.units.patch import same_json

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_FREE_FIELDS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def validate_stateful_set(obj: Json) -> list[FieldError]:
    """Return every rule that a StatefulSet breaks."""
    spec = obj.get("spec") or {}
    errors = validate_workload("StatefulSet", obj)
    policy = spec.get("podManagementPolicy")
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in {"OrderedReady", "Parallel"}:
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += check_not_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    return errors + _strategy(spec.get("updateStrategy") or {})


def _strategy(strategy: Json) -> list[FieldError]:
    at = "spec.updateStrategy"
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if not kind:
        return [required(at)]
    if kind not in {"RollingUpdate", "OnDelete"}:
        return [invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    if kind == "OnDelete":
        return [invalid(f"{at}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'")]
    errors = check_not_negative(f"{at}.rollingUpdate.partition", rolling.get("partition"))
    most = rolling.get("maxUnavailable")
    errors += check_int_or_percent(f"{at}.rollingUpdate.maxUnavailable", most, at_most_100=True)
    if is_zero_count(most):
        errors.append(invalid(f"{at}.rollingUpdate.maxUnavailable", most, "cannot be 0"))
    return errors


def validate_stateful_set_update(obj: Json, old: Json) -> list[FieldError]:
    """Return the rules that a change of a StatefulSet breaks."""
    new_spec, old_spec = (
        {name: value for name, value in (each.get("spec") or {}).items() if name not in _FREE_FIELDS}
        for each in (obj, old)
    )
    if same_json(new_spec, old_spec):
        return []
    detail = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [forbidden("spec", detail)]
