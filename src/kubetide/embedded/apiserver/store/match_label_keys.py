"""matchLabelKeys and mismatchLabelKeys of a new pod, merged into the selectors that they stand beside.

A key stands for the pod's own value of that label; keys that the pod lacks are passed over, and so are those beside no
selector, which matches nothing. Schedulers read the selectors alone.

Source: Kubernetes v1.36, registry/core/pod, preparation of new pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubetide.objects.base import Json

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def with_match_label_keys(pod: Json) -> Json:
    """Return a new pod with the label keys of its affinity and of its spread constraints in their selectors."""
    spec = pod["spec"]
    labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
    changed: Json = {}
    affinity = spec.get("affinity")
    if affinity:
        parts = {name: affinity.get(name) for name in ("podAffinity", "podAntiAffinity")}
        changed["affinity"] = {
            **affinity,
            **{name: _affinity(part, labels) for name, part in parts.items() if part},
        }
    constraints = spec.get("topologySpreadConstraints")
    if constraints:
        changed["topologySpreadConstraints"] = [_merged(one, labels) for one in constraints]
    return {**pod, "spec": {**spec, **changed}} if changed else pod


def _affinity(part: Json, labels: Mapping[str, str]) -> Json:
    """Return pod affinity or anti-affinity with merged terms."""
    found = dict(part)
    if part.get(_REQUIRED):
        found[_REQUIRED] = [_merged(term, labels) for term in part[_REQUIRED]]
    if part.get(_PREFERRED):
        found[_PREFERRED] = [
            {**one, "podAffinityTerm": _merged(one.get("podAffinityTerm") or {}, labels)}
            for one in part[_PREFERRED]
        ]
    return found


def _merged(term: Json, labels: Mapping[str, str]) -> Json:
    """Return a term or constraint with its keys in its selector."""
    selector = term.get("labelSelector")
    if selector is None:
        return term
    more = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in _OPERATORS
        for key in _keys(term.get(field))
        if key in labels
    ]
    if not more:
        return term
    expressions = [*(selector.get("matchExpressions") or ()), *more]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}


def _keys(given: object) -> list[str]:
    """Return the keys of a list; no model says that it is one."""
    return [key for key in given if isinstance(key, str)] if isinstance(given, list) else []
