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
