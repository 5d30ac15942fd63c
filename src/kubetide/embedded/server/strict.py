"""What a body holds that nobody reads: unknown and duplicate fields, for ``fieldValidation``.

Source: API concepts v1.36, "Validation for unrecognized or duplicate fields". What a kind of which no
type is known holds is left to its own schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubetide.embedded.server.types import api_types, fields_of, type_of_kind
from kubetide.objects.kinds import Kind
from kubetide.objects.structure import child_path


def unknown_fields(kind: Kind[Any], body: Any) -> list[str]:
    """Gives the paths of the fields that the kind does not have, in the order of the body."""
    name = type_of_kind(kind)
    return list(_unknown(body, name, "")) if name else []


def duplicate_fields(text: bytes) -> list[str]:
    """Gives the paths of the members that a JSON text says more than once."""
    return list(_duplicates(json.loads(text, object_pairs_hook=_Marked), ""))


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
