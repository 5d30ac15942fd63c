"""What a body holds that nobody reads: unknown and duplicate fields, for ``fieldValidation``.

Source: API concepts v1.36, "Validation for unrecognized or duplicate fields"; of custom kinds
apiextensions-apiserver v1.36, which tells of metadata first and then of the rest in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubetide.embedded.server.types import OBJECT_META, api_types, fields_of, type_of_kind
from kubetide.embedded.store.custom import CustomKind
from kubetide.embedded.store.unknown import embedded_metadata, unknown_paths
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.structure import child_path


def unknown_fields(kind: Kind[Any], body: Any) -> list[str]:
    """Gives the paths of the fields that the kind does not have, in the order that they are told."""
    if isinstance(kind, CustomKind):
        return list(_unknown_of_custom(kind, body)) if isinstance(body, dict) else []
    name = type_of_kind(kind)
    return list(_unknown(body, name, "")) if name else []


def duplicate_fields(text: bytes) -> list[str]:
    """Gives the paths of the members that a JSON text says more than once."""
    return list(_duplicates(json.loads(text, object_pairs_hook=_Marked), ""))


def _unknown_of_custom(kind: CustomKind, body: Json) -> Iterator[str]:
    yield from _unknown(body.get("metadata"), OBJECT_META, "metadata")
    yield from unknown_paths(body, kind.schema)
    for path, metadata in embedded_metadata(body, kind.schema):
        yield from _unknown(metadata, OBJECT_META, path)


class _Marked(dict[str, Any]):
    """An object of which it is known what it said twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice: tuple[str, ...] = ()
        if len(self) < len(pairs):
            names = [name for name, _ in pairs]
            self.twice = tuple(name for name in self if names.count(name) > 1)


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Marked):
        for name in value.twice:
            yield child_path(path, name)
        for name, member in value.items():
            if isinstance(member, dict | list):
                yield from _duplicates(member, child_path(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _duplicates(item, f"{path}[{index}]")


def _unknown(value: Any, kind: str, path: str) -> Iterator[str]:
    if kind.startswith("[]"):
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _unknown(item, kind[2:], f"{path}[{index}]")
    elif kind.startswith("{}"):
        if isinstance(value, dict):
            for name, member in value.items():
                yield from _unknown(member, kind[2:], child_path(path, name))
    elif kind in api_types() and isinstance(value, dict):
        known = {field.name: field.type for field in fields_of(kind)}
        for name, member in value.items():
            if name in known:
                yield from _unknown(member, known[name], child_path(path, name))
            # Directives of a strategic merge patch begin with a dollar.
            elif not name.startswith("$") and (path or name not in {"apiVersion", "kind"}):
                yield child_path(path, name)
