"""How objects of a structural schema are merged: which lists and maps are one value, and which have keys.

Source: API concepts v1.36, server-side apply, "Custom resources"; the x-kubernetes markers.
"""

from __future__ import annotations

from kubetide.embedded.apiserver.patches.merging import PLAIN, Shape
from kubetide.objects.base import Json


def shape_of_schema(schema: Json) -> Shape:
    """Return how server-side apply sees objects of the schema."""
    more = schema.get("additionalProperties")
    properties = schema.get("properties") or {}
    if isinstance(schema.get("items"), dict):
        items = schema["items"]
        defaults = {
            name: one["default"] for name, one in (items.get("properties") or {}).items() if "default" in one
        }
        return Shape(
            items=shape_of_schema(items),
            list_type=schema.get("x-kubernetes-list-type") or "atomic",
            keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
            key_defaults=defaults,
        )
    if not properties and not isinstance(more, dict) and schema.get("x-kubernetes-map-type") != "atomic":
        return PLAIN
    return Shape(
        fields={name: shape_of_schema(child) for name, child in properties.items()},
        items=shape_of_schema(more) if isinstance(more, dict) else None,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
    )
