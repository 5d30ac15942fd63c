"""Copies of plain JSON."""

from __future__ import annotations

from typing import Any


def copy_json(value: Any) -> Any:
    """Return a deep copy of decoded JSON; tuples become lists."""
    if isinstance(value, dict):
        return {
            key: copy_json(item) if isinstance(item, dict | list | tuple) else item
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [copy_json(item) if isinstance(item, dict | list | tuple) else item for item in value]
    return value


def without_nulls(value: Any) -> Any:
    """Return the JSON without members that are null: the API server reads null as not there."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
