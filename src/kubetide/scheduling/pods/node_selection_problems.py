"""Why a term of node affinity cannot be read, as kube-scheduler words it.

Source: component-helpers v1.36 nodeaffinity, apimachinery labels and field errors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kubetide.objects.pod import NodeSelectorRequirement, NodeSelectorTerm
from kubetide.units.names import label_key_errors, label_value_errors
from kubetide.units.selector_text import parse_int64

_SUPPORTED = 'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
_SUPPORTED_FIELDS = 'supported values: "In", "NotIn"'


def term_problems(term: NodeSelectorTerm, at: str) -> list[str]:
    """Return the problems of a term, one text each that begins with the field; ``at`` is the term's path."""
    found: list[str] = []
    for index, one in enumerate(term.match_expressions or ()):
        found += _label_problems(one, f"{at}.matchExpressions[{index}]")
    for index, one in enumerate(term.match_fields or ()):
        found += _field_problems(one, f"{at}.matchFields[{index}]")
    return found


def _label_problems(one: NodeSelectorRequirement, at: str) -> list[str]:
    values = one.values or ()
    if one.operator not in {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}:
        return [f"{at}.operator: Unsupported value: {_quote(one.operator)}: {_SUPPORTED}"]
    found = []
    if problems := label_key_errors(one.key):
        found.append(f"{at}.key: Invalid value: {_quote(one.key)}: {'; '.join(problems)}")
    whole = f"{at}.values: Invalid value: {_listed(one.values)}: "
    match one.operator:
        case "In" | "NotIn" if not values:
            found.append(f"{whole}for 'in', 'notin' operators, values set can't be empty")
        case "Exists" | "DoesNotExist" if values:
            found.append(f"{whole}values set must be empty for exists and does not exist")
        case "Gt" | "Lt" if len(values) != 1:
            found.append(f"{whole}for 'Gt', 'Lt' operators, exactly one value is required")
        case "Gt" | "Lt" if parse_int64(values[0]) is None:
            bound = f"{at}.values[0]: Invalid value: {_quote(values[0])}: "
            found.append(f"{bound}for 'Gt', 'Lt' operators, the value must be an integer")
    for index, value in enumerate(values):
        if problems := label_value_errors(value):
            text = "; ".join(problems)
            found.append(f"{at}.values[{index}][{one.key}]: Invalid value: {_quote(value)}: {text}")
    return found


def _field_problems(one: NodeSelectorRequirement, at: str) -> list[str]:
    if one.operator not in {"In", "NotIn"}:
        return [f"{at}.operator: Unsupported value: {_quote(one.operator)}: {_SUPPORTED_FIELDS}"]
    if len(one.values or ()) != 1:
        return [f"{at}.values: Invalid value: {_listed(one.values)}: must have one element"]
    return []


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(values: Sequence[str] | None) -> str:
    return json.dumps(None if values is None else list(values), ensure_ascii=False, separators=(",", ":"))
