"""Which nodes a pod asks for: its selector and its required affinity to nodes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.nodes.reference.world import Json


def admits(spec: Json, node: Json) -> bool:
    """Return whether the spec of a pod lets it run on the node, by the node's labels and name."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_holds(one, node) for one in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Json, node: Json) -> bool:
    """All parts of a term must hold; one without parts holds nowhere."""
    labels = node["metadata"].get("labels") or {}
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not by_label and not by_field:
        return False
    fields = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(one, labels) for one in by_label) and all(_holds(one, fields) for one in by_field)


def _holds(expression: Json, values: dict[str, Any]) -> bool:
    value, wanted = values.get(expression["key"]), expression.get("values") or []
    operator = expression["operator"]
    if operator == "In":
        return value in wanted
    if operator == "NotIn":
        return value not in wanted
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    with suppress(TypeError, ValueError):
        return int(value) > int(wanted[0]) if operator == "Gt" else int(value) < int(wanted[0])  # type: ignore[arg-type]
    return False
