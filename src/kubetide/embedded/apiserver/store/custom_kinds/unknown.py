"""What an object of a custom kind says that its schema does not know.

Source: apiextensions-apiserver v1.36, pkg/apiserver/schema/pruning: paths are joined by dots
whatever the names hold, and reported in order of text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubetide.embedded.apiserver.store.custom_kinds.schema import EMBEDDED, PRESERVE
from kubetide.objects.base import Json

_ROOT_KEPT = ("apiVersion", "kind", "metadata")


def unknown_paths(obj: Json, schema: Json) -> list[str]:
    """Return the paths that pruning cuts off, in order; metadata is not looked into."""
    return sorted(_unknown(obj, {**schema, EMBEDDED: True}, ""))


def _unknown(value: Any, schema: Json, path: str) -> Iterator[str]:
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _unknown(item, schema["items"], f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    keep = bool(schema.get(PRESERVE)) or schema.get("additionalProperties") is True
    for name, member in value.items():
        if schema.get(EMBEDDED) and name in _ROOT_KEPT:
            continue
        child = _child(schema, name)
        if child is not None:
            yield from _unknown(member, child, _joined(path, name))
        elif not keep:
            yield _joined(path, name)


def embedded_metadata(value: Any, schema: Json, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the metadata of each whole object that stands within an object, with its path."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from embedded_metadata(item, schema["items"], f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    if schema.get(EMBEDDED) and "metadata" in value:
        yield _joined(path, "metadata"), value["metadata"]
    for name, member in value.items():
        child = _child(schema, name)
        if child is not None:
            yield from embedded_metadata(member, child, _joined(path, name))


def _child(schema: Json, name: str) -> Json | None:
    """Return the schema of a member, None where there is none."""
    found = (schema.get("properties") or {}).get(name, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
