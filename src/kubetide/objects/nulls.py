"""JSON without its nulls: a member that is null is as if it were not there, as Go and the API server read it."""

from __future__ import annotations

from typing import Any


def without_nulls(value: Any) -> Any:
    """Return the JSON without members that are null, at any depth; entries of lists stay."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value
