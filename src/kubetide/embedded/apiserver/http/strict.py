"""What a body holds that its type does not: unknown and duplicate fields, and values of another type.

Source: API concepts v1.36, "Validation for unrecognized or duplicate fields"; the words about types
are those of Go's encoding/json. The schema of a custom kind says what it holds.
"""

from __future__ import annotations

import binascii
import json
import math
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kubetide.embedded.apiserver.manifests.structure import child_path, number_bits
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.custom_kinds.unknown import embedded_metadata, unknown_paths
from kubetide.objects.api_types import (
    DURATION,
    INT_OR_STRING,
    MICRO_TIME,
    OBJECT_META,
    QUANTITY,
    TIME,
    api_types,
    fields_of,
    type_of_kind,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import parse_rfc3339

_GO_NAMES = {"string": "string", "bool": "bool", "float": "float64", "bytes": "[]uint8"}
# The struct that kube-apiserver reads the type of a body into.
_TYPE_STRUCT = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


@dataclass(slots=True)
class Findings:
    """The paths of unknown fields in the order of the body, and the first value of a wrong type."""

    unknown: list[str] = field(default_factory=list)
    misfit: str = ""


def findings(kind: Kind[Any], body: Any) -> Findings:
    """Look through a body."""
    found = Findings()
    if isinstance(kind, CustomKind):
        if isinstance(body, dict):
            _walk_custom(found, kind, body)
        return found
    name = type_of_kind(kind)
    if name:
        _walk(found, body, name, _Place("", "", kind.kind, ""))
    return found


def _walk_custom(found: Findings, kind: CustomKind, body: Json) -> None:
    """Upstream reports metadata first and then the rest in order."""
    _walk(found, body.get("metadata"), OBJECT_META, _Place("metadata", "metadata", kind.kind, "metadata"))
    found.unknown += unknown_paths(body, kind.schema)
    for path, metadata in embedded_metadata(body, kind.schema):
        _walk(found, metadata, OBJECT_META, _Place(path, path, "ObjectMeta", "metadata"))


def misfit_in(body: Json, kind: str) -> str:
    """Return the first value of a wrong type in an object of an API type that is no resource, empty for none."""
    found = Findings()
    _walk(found, body, kind, _Place("", "", kind.rpartition(".")[2], ""))
    return found.misfit


def not_an_object(value: Any, go_type: str = _TYPE_STRUCT) -> str:
    """Return Go's words about a body that is no object."""
    return f"json: cannot unmarshal {_go_value(value)} into Go value of type {go_type}"


def duplicate_fields(text: bytes) -> list[str]:
    """Return the paths of the members that a JSON text says more than once."""
    plain = text.decode(errors="replace")  # as Go reads what is no UTF-8
    return list(_duplicates(json.loads(plain, object_pairs_hook=_Marked), ""))


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
        for name, member in value.items():
            if isinstance(member, dict | list):
                yield from _duplicates(member, child_path(path, name))
            if name in value.twice:
                yield child_path(path, name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _duplicates(item, f"{path}[{index}]")


@dataclass(slots=True)
class _Place:
    """Where a value stands: its path, its path as Go says it, the struct it is in, its own name."""

    path: str
    go_path: str
    owner: str
    name: str

    def item(self, index: int) -> _Place:
        return _Place(f"{self.path}[{index}]", self.go_path, self.owner, self.name)

    def entry(self, name: str) -> _Place:
        return _Place(child_path(self.path, name), self.go_path, self.owner, self.name)

    def member(self, name: str, owner: str) -> _Place:
        go_path = f"{self.go_path}.{name}" if self.go_path else name
        return _Place(child_path(self.path, name), go_path, owner, name)


def _walk(found: Findings, value: Any, kind: str, place: _Place) -> None:
    if value is None:
        return
    if kind.startswith("[]"):
        if isinstance(value, list):
            for index, item in enumerate(value):
                _walk(found, item, kind[2:], place.item(index))
        else:
            _note(found, value, kind, place)
    elif kind.startswith("{}"):
        if isinstance(value, dict):
            for name, member in value.items():
                _walk(found, member, kind[2:], place.entry(name))
        else:
            _note(found, value, kind, place)
    elif kind in _SCALARS:
        if not found.misfit:
            found.misfit = _SCALARS[kind](value, kind, place)
    elif kind in api_types():
        if isinstance(value, dict):
            _walk_members(found, value, kind, place)
        else:
            _note(found, value, kind, place)


def _walk_members(found: Findings, value: dict[str, Any], kind: str, place: _Place) -> None:
    known = {one.name: one.type for one in fields_of(kind)}
    owner = kind.rpartition(".")[2]
    for name, member in value.items():
        if name in known:
            _walk(found, member, known[name], place.member(name, owner))
        # Directives of a strategic merge patch begin with a dollar.
        elif not name.startswith("$") and (place.path or name not in {"apiVersion", "kind"}):
            found.unknown.append(child_path(place.path, name))


# ── Values of another type ──────────────────────────────────────────────────────────────────────


def _note(found: Findings, value: Any, kind: str, place: _Place) -> None:
    if not found.misfit:
        found.misfit = cannot_unmarshal(value, _go_type(kind, place.name), place.owner, place.go_path)


def cannot_unmarshal(value: Any, go_type: str, owner: str, path: str) -> str:
    """Return Go's words about a value that a field cannot hold."""
    shown = _go_value(value)
    if shown == "number" and go_type.startswith("int"):
        shown = f"number {json.dumps(value)}"
    return f"json: cannot unmarshal {shown} into Go struct field {owner}.{path} of type {go_type}"


def _go_value(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _go_type(kind: str, name: str) -> str:
    if kind.startswith("[]"):
        return f"[]{_go_type(kind[2:], name)}"
    if kind.startswith("{}"):
        return f"map[string]{_go_type(kind[2:], name)}"
    if kind == "int":
        return f"int{number_bits(name)}"
    package, _, own = kind.rpartition(".")
    return _GO_NAMES.get(kind) or f"{package.rpartition('.')[2]}.{own}"


def _misfit(value: Any, kind: str, place: _Place) -> str:
    return cannot_unmarshal(value, _go_type(kind, place.name), place.owner, place.go_path)


def _string(value: Any, kind: str, place: _Place) -> str:
    return "" if isinstance(value, str) else _misfit(value, kind, place)


def _bool(value: Any, kind: str, place: _Place) -> str:
    return "" if isinstance(value, bool) else _misfit(value, kind, place)


def _int(value: Any, kind: str, place: _Place) -> str:
    bits = number_bits(place.name) - 1
    whole = isinstance(value, int) and not isinstance(value, bool)
    return "" if whole and -(1 << bits) <= value < 1 << bits else _misfit(value, kind, place)


def _float(value: Any, kind: str, place: _Place) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number and math.isfinite(value) else _misfit(value, kind, place)


def _bytes(value: Any, kind: str, place: _Place) -> str:
    if not isinstance(value, str):
        return _misfit(value, kind, place)
    try:
        b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        good = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
        at = next((index for index, char in enumerate(value) if char not in good), len(value))
        return f"illegal base64 data at input byte {at}"
    return ""


def _quantity(value: Any, kind: str, place: _Place) -> str:
    del kind, place
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            Quantity.parse(value)
        except QuantityError as error:
            return str(error).partition(" is not a quantity: ")[2] or str(error)
        return ""
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _int_or_string(value: Any, kind: str, place: _Place) -> str:
    del kind, place
    if isinstance(value, str):
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31:
        return ""
    shown = _go_value(value)
    if shown == "number":
        shown = f"number {json.dumps(value)}"
    return f"json: cannot unmarshal {shown} into Go value of type int32"


def _time(value: Any, kind: str, place: _Place) -> str:
    del place
    if not isinstance(value, str):
        return f"json: cannot unmarshal {_go_value(value)} into Go value of type string"
    if kind == DURATION:
        return ""
    try:
        parse_rfc3339(value)
    except ValueError:
        form = "2006-01-02T15:04:05" + (".000000" if kind == MICRO_TIME else "") + "Z07:00"
        return f'parsing time "{value}" as "{form}": cannot parse "{value}" as "2006"'
    return ""


_SCALARS = {
    "string": _string,
    "bool": _bool,
    "int": _int,
    "float": _float,
    "bytes": _bytes,
    QUANTITY: _quantity,
    INT_OR_STRING: _int_or_string,
    TIME: _time,
    MICRO_TIME: _time,
    DURATION: _time,
}
