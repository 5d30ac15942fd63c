"""Objects in Kubernetes' protobuf form, as JSON with every field.

Source: API concepts v1.36, "Kubernetes Protobuf encoding": four bytes of magic, then a message with
the type and the object.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from kubetide.objects.api_types import (
    DURATION,
    FIELDS_V1,
    INT_OR_STRING,
    META,
    MICRO_TIME,
    QUANTITY,
    RAW_EXTENSION,
    TIME,
    Field,
    api_types,
    type_name,
)
from kubetide.objects.base import Json
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339, format_rfc3339_micro

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

PROTOBUF_OR_JSON = f"{MEDIA_TYPE}, application/json"
"""What a client accepts that reads both."""

MAGIC = b"k8s\x00"
"""What every object and list begins with, and no JSON."""

_META_KINDS = frozenset({"DeleteOptions", "Status"})
_DEEPEST = 64
_SCALARS = frozenset({"string", "bool", "int", "float", "bytes"})


class ProtobufError(ValueError):
    """Bytes that are not a message of the expected type."""


def decode_object(raw: bytes) -> Json:
    """Return an object with its apiVersion and kind.

    Raises: ProtobufError, for bytes that are no such object and for kinds that are known in JSON only.
    """
    try:
        return _object(raw)
    except (UnicodeDecodeError, msgspec.DecodeError, struct.error) as error:
        raise ProtobufError(str(error)) from error


def decode_message(raw: bytes, name: str) -> Json:
    """Return the fields of a message of the type with that name. Raises ProtobufError."""
    try:
        return _message(memoryview(raw), name, 0)
    except (UnicodeDecodeError, msgspec.DecodeError, struct.error) as error:
        raise ProtobufError(str(error)) from error


def _object(raw: bytes) -> Json:
    if not raw.startswith(MAGIC):
        raise ProtobufError("the magic number is missing")
    type_meta, body = _envelope(memoryview(raw)[len(MAGIC) :])
    group, _, version = type_meta.get("apiVersion", "").rpartition("/")
    kind = type_meta.get("kind", "")
    name = f"{META}.{kind}" if kind in _META_KINDS else type_name(group, version, kind)
    if name not in api_types():
        raise ProtobufError(f"{kind} of {type_meta.get('apiVersion')} is known in JSON only")
    return {**type_meta, **_message(body, name, 0)}


def _envelope(raw: memoryview) -> tuple[Json, memoryview]:
    type_meta: Json = {}
    body = memoryview(b"")
    for number, value in _fields(raw):
        if number == 1 and isinstance(value, memoryview):
            for part, text in _fields(value):
                type_meta["apiVersion" if part == 1 else "kind"] = _text(text)
        elif number == 2 and isinstance(value, memoryview):
            body = value
    return type_meta, body


def _fields(raw: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field: an int for a varint, bytes for all else."""
    position, end = 0, len(raw)
    while position < end:
        tag, position = _varint(raw, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(raw, position)
            yield number, value
            continue
        if wire == 2:
            size, position = _varint(raw, position)
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"field {number} has the unknown wire type {wire}")
        if position + size > end:
            raise ProtobufError(f"field {number} is cut off")
        yield number, raw[position : position + size]
        position += size


def _varint(raw: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise ProtobufError("a number is cut off")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _message(raw: memoryview, name: str, depth: int) -> Json:
    if depth > _DEEPEST:
        raise ProtobufError("the object is nested too deeply")
    known = {field.number: field for field in api_types()[name]}
    found: Json = {}
    for number, value in _fields(raw):
        field = known.get(number)
        if field is None:
            continue
        if not field.name:
            if isinstance(value, memoryview):
                found |= _message(value, field.type, depth + 1)
        elif field.type.startswith("[]"):
            found.setdefault(field.name, []).append(_value(value, field.type[2:], depth))
        elif field.type.startswith("{}"):
            key, member = _member(value, field.type[2:], depth)
            found.setdefault(field.name, {})[key] = member
        else:
            decoded = _value(value, field.type, depth)
            if _is_said(field, decoded):
                found[field.name] = decoded
    return found


def _is_said(field: Field, value: Any) -> bool:
    """Return whether a value is more than the zero that the protobuf form writes for an absent one; JSON has empty structs."""
    return field.keeps_zero or bool(value) or isinstance(value, dict)


def _member(raw: int | memoryview, kind: str, depth: int) -> tuple[str, Any]:
    key, member = "", None
    for number, value in _fields(_bytes(raw)):
        if number == 1:
            key = _text(value)
        else:
            member = _value(value, kind, depth)
    return key, _ZEROS.get(kind) if member is None else member


_ZEROS: dict[str, Any] = {"string": "", "bytes": "", "int": 0, "bool": False, QUANTITY: "0"}


def _value(raw: int | memoryview, kind: str, depth: int) -> Any:
    if kind in _SCALARS:
        return _scalar(raw, kind)
    if kind in {TIME, MICRO_TIME}:
        return _time(_bytes(raw), kind)
    parts = dict(_fields(_bytes(raw))) if kind in _WRAPPED else {}
    if kind == QUANTITY:
        return _text(parts.get(1, memoryview(b"")))
    if kind == INT_OR_STRING:
        return _text(parts.get(3, memoryview(b""))) if parts.get(1) == 1 else _signed(parts.get(2, 0))
    if kind == DURATION:
        return format_duration(Duration(_signed(parts.get(1, 0))))
    if kind in {FIELDS_V1, RAW_EXTENSION}:
        text = bytes(_bytes(parts.get(1, memoryview(b""))))
        return msgspec.json.decode(text) if text else None
    return _message(_bytes(raw), kind, depth + 1)


_WRAPPED = frozenset({QUANTITY, INT_OR_STRING, DURATION, FIELDS_V1, RAW_EXTENSION})


def _scalar(raw: int | memoryview, kind: str) -> Any:
    if kind == "string":
        return _text(raw)
    if kind == "bytes":
        return base64.b64encode(_bytes(raw)).decode()
    if kind == "float":
        return struct.unpack("<d", _bytes(raw))[0]
    return bool(raw) if kind == "bool" else _signed(raw)


def _time(raw: memoryview, kind: str) -> str | None:
    parts = dict(_fields(raw))
    if not parts:
        return None
    whole = _signed(parts.get(1, 0))
    instant = Instant(whole * 1_000_000_000 + _signed(parts.get(2, 0)))
    try:
        return format_rfc3339_micro(instant) if kind == MICRO_TIME else format_rfc3339(instant)
    except (ValueError, OverflowError) as error:
        raise ProtobufError(f"a time is out of range: {error}") from error


def _signed(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a number is expected where bytes stand")
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ProtobufError("bytes are expected where a number stands")
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_bytes(value)).decode()
