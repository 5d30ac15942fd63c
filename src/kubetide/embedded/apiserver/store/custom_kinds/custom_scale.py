"""What stands in a custom object at the paths of its scale subresource.

Source: apiextensions-apiserver v1.36.2, registry/customresource, seen from its answers.
"""

from __future__ import annotations

from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.definition import ScalePaths
from kubetide.objects.field_errors import FieldError, invalid

_MOST_REPLICAS = (1 << 31) - 1


class _Unreadable(Exception):
    """A value of another type than the path wants; the text is upstream's."""


def scale_faults(obj: Json, scale: ScalePaths | None) -> list[FieldError]:
    """Return what keeps the replicas, of spec and status, and the selector from being read."""
    if scale is None:
        return []
    faults = []
    for path in (scale.spec_replicas_path, scale.status_replicas_path):
        try:
            replicas = _at(obj, path, int) or 0
        except _Unreadable as error:
            faults.append(invalid(path, 0, str(error)))
            continue
        if replicas < 0:
            faults.append(invalid(path, replicas, "should be a non-negative integer"))
        elif replicas > _MOST_REPLICAS:
            faults.append(invalid(path, replicas, f"should be less than or equal to {_MOST_REPLICAS}"))
    if scale.label_selector_path:
        try:
            _at(obj, scale.label_selector_path, str)
        except _Unreadable as error:
            faults.append(invalid(scale.label_selector_path, "", str(error)))
    return faults


def _at(obj: Json, path: str, expected: type[Any]) -> Any:
    """Return the value at a path, None where nothing is. Raises _Unreadable."""
    value: Any = obj
    for part in path.strip(".").split("."):
        if not isinstance(value, dict):
            raise _Unreadable(_mismatch(path, value, "map[string]interface{}"))
        if part not in value:
            return None
        value = value[part]
    if not isinstance(value, expected) or isinstance(value, bool):
        raise _Unreadable(_mismatch(path, value, _GO_TYPES[expected]))
    return value


def _mismatch(path: str, value: Any, expected: str) -> str:
    return f"{path} accessor error: {_go_text(value)} is of the type {_GO_TYPES[type(value)]}, expected {expected}"


_GO_TYPES: dict[type[Any], str] = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _go_text(value: Any) -> str:
    """Return a JSON value as Go prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_text(value[key])}' for key in sorted(value))}]"
    return str(value)
