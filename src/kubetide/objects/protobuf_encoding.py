"""Objects in Kubernetes' protobuf form, from JSON: byte for byte what upstream's own encoders write.

They write fields in order of their numbers, also those that are zero unless zero differs from absent, and
maps sorted by key. Source: k8s.io/api v0.36, generated.pb.go.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kubetide.objects.api_types import (
    DURATION,
    FIELDS_V1,
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    RAW_EXTENSION,
    TIME,
    Field,
    api_types,
)
from kubetide.objects.base import Json
from kubetide.units.quantity import Quantity
from kubetide.units.time import parse_duration, parse_rfc3339

_VARINT, _DOUBLE, _BYTES = 0, 1, 2
_NS: Final = 1_000_000_000
_UNSIGNED: Final = (1 << 64) - 1


def encode_message(value: Json, name: str) -> bytes:
    """Return the protobuf form of an object or a part of one, without the envelope.

    Args:
        value: As JSON; fields that the type does not have are left out.
        name: The type, such as ``io.k8s.api.core.v1.Node``.

    Raises: KeyError for an unknown type; ValueError for values that are not of their field's type.
    """
    return b"".join(_field(field, value) for field in sorted(api_types()[name], key=lambda one: one.number))


def _field(field: Field, value: Mapping[str, Any]) -> bytes:
    if not field.name:
        return tagged(field.number, encode_message(dict(value), field.type))
    held = value.get(field.name)
    if field.type.startswith("[]"):
        return b"".join(_one(field.number, field.type[2:], each) for each in held or ())
    if field.type.startswith("{}"):
        entries: dict[str, Any] = held or {}
        return b"".join(
            tagged(field.number, _one(1, "string", key) + _one(2, field.type[2:], entries[key]))
            for key in sorted(entries)
        )
    if held is None and (field.keeps_zero or field.type == "bytes"):
        return b""
    return _one(field.number, field.type, held)


def _one(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "string":
            return tagged(number, (value or "").encode())
        case "bytes":
            return tagged(number, base64.b64decode(value or "", validate=True))
        case "bool" | "int":
            return _tag(number, _VARINT) + _varint(int(value or 0))
        case "float":
            return _tag(number, _DOUBLE) + struct.pack("<d", value or 0.0)
    write = _SPECIAL.get(kind)
    body = write(value) if write else encode_message(value or {}, kind)
    return tagged(number, body)


def _time(value: str | None) -> bytes:
    if not value:
        return b""
    seconds, nanos = divmod(parse_rfc3339(value), _NS)
    return _one(1, "int", seconds) + _one(2, "int", nanos)


def _duration(value: str | int | None) -> bytes:
    return _one(1, "int", parse_duration(value) if isinstance(value, str) else value)


def _quantity(value: str | float | None) -> bytes:
    return _one(1, "string", str(Quantity.parse(value if value is not None else "0")))


def _int_or_string(value: int | str | None) -> bytes:
    is_text = isinstance(value, str)
    number, text = (0, value) if is_text else (value, "")
    return _one(1, "int", is_text) + _one(2, "int", number) + _one(3, "string", text)


def _raw(value: Any) -> bytes:
    return b"" if value is None else tagged(1, msgspec.json.encode(value))


_SPECIAL: Final[Mapping[str, Callable[[Any], bytes]]] = {
    TIME: _time,
    MICRO_TIME: _time,
    DURATION: _duration,
    QUANTITY: _quantity,
    INT_OR_STRING: _int_or_string,
    RAW_EXTENSION: _raw,
    FIELDS_V1: _raw,
}


def tagged(number: int, body: bytes) -> bytes:
    """Return a field of a number that holds text, bytes or a message."""
    return _tag(number, _BYTES) + _varint(len(body)) + body


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    value &= _UNSIGNED
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
