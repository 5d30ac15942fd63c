"""Selectors of labels, as pods, namespaces and nodes are chosen by them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.nodes.reference.world import Json


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches. No selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    for name, value in (selector.get("matchLabels") or {}).items():
        if labels.get(name) != value:
            return False
    return all(holds(one, labels) for one in selector.get("matchExpressions") or ())


def is_empty(selector: Json | None) -> bool:
    """Return whether there is a selector that asks for nothing."""
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def holds(part: Json, labels: Mapping[str, str]) -> bool:
    """Return whether the labels meet one requirement; where the label is absent, both negations hold."""
    value = labels.get(part["key"])
    match part["operator"]:
        case "In":
            return value in part["values"]
        case "NotIn":
            return value not in part["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"the reference knows no operator {part['operator']}")
