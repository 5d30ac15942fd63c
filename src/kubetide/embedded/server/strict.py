"""What a body holds that nobody reads: unknown and duplicate fields, for ``fieldValidation``.

Source: API concepts v1.36, "Validation for unrecognized or duplicate fields". A type whose fields
``objects.upstream_fields`` does not list completely is let pass: silence is better there than a
refusal of a field that upstream has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from kubetide.objects.kinds import Kind
from kubetide.objects.structure import child_path, type_of
from kubetide.objects.upstream_fields import UPSTREAM_FIELDS

_TOP_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def unknown_fields(kind: Kind[Any], body: Any) -> list[str]:
    """Gives the paths of the fields that the kind does not have, in the order of the body."""
    if not isinstance(body, dict) or kind.model is dict:
        return []
    return list(_unknown(body, type_of(kind), "", top=True))


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


def _unknown(value: Any, kind: inspect.Type, path: str, *, top: bool = False) -> Iterator[str]:
    if isinstance(kind, inspect.UnionType):
        for option in kind.types:
            yield from _unknown(value, option, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, dict):
        ours = {field.encode_name: field for field in kind.fields}
        others = UPSTREAM_FIELDS.get(kind.cls, frozenset())
        for name, member in value.items():
            field = ours.get(name)
            if field is not None:
                yield from _unknown(member, field.type, child_path(path, name))
            elif name.startswith("$") or name in others or (top and name in _TOP_FIELDS):
                continue  # directives of a strategic merge patch begin with a dollar
            elif kind.cls in UPSTREAM_FIELDS:
                yield child_path(path, name)
    elif isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, kind.item_type, f"{path}[{index}]")
