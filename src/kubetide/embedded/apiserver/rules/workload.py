"""Rules of Deployments, ReplicaSets, DaemonSets and PodDisruptionBudgets.

Source: Kubernetes v1.36, pkg/apis/apps/validation and pkg/apis/policy/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kubetide.embedded.apiserver.rules.pod import validate_pod_spec
from kubetide.objects.field_errors import (
    IMMUTABLE,
    FieldError,
    check_choice,
    check_int_or_percent,
    check_labels,
    check_not_negative,
    check_selector,
    forbidden,
    invalid,
    is_zero_count,
    required,
    unsupported,
)
from kubetide.objects.meta import LabelSelector
from kubetide.units.patch import same_json
from kubetide.units.selectors import Selector

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_STRATEGIES = {
    "Deployment": ("strategy", ("Recreate", "RollingUpdate")),
    "DaemonSet": ("updateStrategy", ("OnDelete", "RollingUpdate")),
}
_BUDGET_FIELDS = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")


def validate_workload(kind: str, obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    for name in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        errors += check_not_negative(f"spec.{name}", spec.get(name))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if kind == "Deployment" and deadline is not None and 0 <= deadline <= ready:
        errors.append(
            invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
        )
    errors += _selector(kind, spec)
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    errors += check_labels("spec.template.metadata.labels", metadata.get("labels"))
    pod = template.get("spec") or {}
    claims = [(one.get("metadata") or {}).get("name") or "" for one in spec.get("volumeClaimTemplates") or ()]
    errors += validate_pod_spec(pod, "spec.template.spec", claims=claims if kind == "StatefulSet" else ())
    policy = pod.get("restartPolicy")
    if policy in {"OnFailure", "Never"}:
        errors.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if kind in _STRATEGIES:
        name, types = _STRATEGIES[kind]
        errors += _strategy(spec.get(name) or {}, f"spec.{name}", types)
    return errors


def validate_pod_template(obj: Json) -> list[FieldError]:
    """Return what is wrong with a core/v1 PodTemplate."""
    template = obj.get("template") or {}
    errors = check_labels("template.metadata.labels", (template.get("metadata") or {}).get("labels"))
    return errors + validate_pod_spec(template.get("spec") or {}, "template.spec")


def _selector(kind: str, spec: Json) -> list[FieldError]:
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    unmatched = invalid(
        "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
    )
    if selector is None:
        # Upstream reads no selector as one that matches nothing.
        return [required("spec.selector"), unmatched]
    errors = check_selector("spec.selector", selector)
    if errors:
        return errors
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        # Upstream says "deployment" of a ReplicaSet, too.
        word = kind.lower() if kind in {"DaemonSet", "StatefulSet"} else "deployment"
        return [invalid("spec.selector", selector, f"empty selector is invalid for {word}")]
    matches = Selector.from_object(msgspec.convert(selector, LabelSelector)).matches(labels or {})
    return [] if matches else [unmatched]


def _strategy(strategy: Json, at: str, types: tuple[str, ...]) -> list[FieldError]:
    kind = strategy.get("type") or ""
    rolling = strategy.get("rollingUpdate")
    # Upstream shows the whole strategy, as its own types name the members.
    shown = {"Type": kind, "RollingUpdate": rolling}
    errors = [unsupported(at, shown, types)] if kind and kind not in types else []
    if not kind:
        errors.append(required(f"{at}.type"))
    if rolling is None:
        return errors
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [*errors, forbidden(f"{at}.rollingUpdate", detail)]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors += check_int_or_percent(f"{at}.rollingUpdate.maxUnavailable", unavailable, at_most_100=True)
    errors += check_int_or_percent(f"{at}.rollingUpdate.maxSurge", surge)
    if is_zero_count(unavailable) and is_zero_count(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{at}.rollingUpdate.maxUnavailable", unavailable, detail))
    return errors


def validate_workload_update(obj: Json, old: Json) -> list[FieldError]:
    selector, before = (obj.get("spec") or {}).get("selector"), (old.get("spec") or {}).get("selector")
    return [] if same_json(selector, before) else [invalid("spec.selector", selector, IMMUTABLE)]


def validate_budget(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        # Upstream shows its own type.
        shown = {name[0].upper() + name[1:]: spec.get(name) for name in _BUDGET_FIELDS}
        errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        errors += check_int_or_percent(f"spec.{name}", value, at_most_100=True)
    policy = spec.get("unhealthyPodEvictionPolicy")
    errors += check_choice("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
    return errors + check_selector("spec.selector", spec.get("selector"))
