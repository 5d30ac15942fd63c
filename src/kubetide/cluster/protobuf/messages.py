"""Message types of just the fields that are read. What is read of a piece at a time, and maybe shared, is bytes there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kubetide.cluster.protobuf.fields import ModelField, model_fields, nested

_PACKAGE = "kubetide"
_ABSENT_ESCAPED = "\\377"

ENTRY = "Entry"
"""An entry of a map: ``key`` and ``value``, as bytes."""
AMOUNT = "Amount"
"""A quantity: its ``text``, as bytes."""
INSTANT = "Time"
"""A time: its ``seconds``."""
TYPE_META = "TypeMeta"
"""What type an object is of: ``api_version`` and ``kind``."""
EVENT = "WatchEvent"
"""An event of a watch: its ``type``, and the object within its ``object`` as ``raw`` bytes."""

_ONE = FieldDescriptorProto.LABEL_OPTIONAL
_MANY = FieldDescriptorProto.LABEL_REPEATED
_BYTES = FieldDescriptorProto.TYPE_BYTES
_STRING = FieldDescriptorProto.TYPE_STRING
_MESSAGE = FieldDescriptorProto.TYPE_MESSAGE


def message_name(type_name: str) -> str:
    """Return the name of the message type of an API type."""
    return type_name.replace(".", "_").replace("-", "_")


def list_envelope(type_name: str) -> str:
    """Return the name of the message type that a list of objects of that type comes in."""
    return f"{message_name(type_name)}_ListEnvelope"


def envelope(type_name: str) -> str:
    """Return the name of the message type that one object of that type comes in."""
    return f"{message_name(type_name)}_Envelope"


def message_types(roots: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message types by name: of everything that objects of these types hold, and of what they come in.

    Args:
        roots: The struct of each API type of objects.
    """
    file = FileDescriptorProto(name="kubetide.proto", package=_PACKAGE, syntax="proto2")
    _fixed(file)
    made: set[str] = set()
    for root, model in roots.items():
        for one, type_name in nested(model, root):
            if type_name not in made:
                made.add(type_name)
                _add_type(file, one, type_name)
        _add_envelopes(file, root)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
        )
        for message in file.message_type
    }


def _fixed(file: FileDescriptorProto) -> None:
    """Add what needs no struct. Source: apimachinery v0.36, runtime and meta/v1, generated.proto."""
    entry = file.message_type.add(name=ENTRY)
    _add(entry, "key", 1, _BYTES)
    _add(entry, "value", 2, _BYTES)
    _add(file.message_type.add(name=AMOUNT), "text", 1, _BYTES)
    _add(file.message_type.add(name=INSTANT), "seconds", 1, FieldDescriptorProto.TYPE_INT64)
    _add(file.message_type.add(name="RawExtension"), "raw", 1, _BYTES)
    event = file.message_type.add(name=EVENT)
    _add(event, "type", 1, _STRING)
    _add(event, "object", 2, _MESSAGE, of="RawExtension")
    type_meta = file.message_type.add(name=TYPE_META)
    _add(type_meta, "api_version", 1, _STRING)
    _add(type_meta, "kind", 2, _STRING)
    list_meta = file.message_type.add(name="ListMeta")
    _add(list_meta, "resource_version", 2, _STRING)
    _add(list_meta, "continue_", 3, _STRING)


def _add_envelopes(file: FileDescriptorProto, type_name: str) -> None:
    name = message_name(type_name)
    one = file.message_type.add(name=envelope(type_name))
    _add(one, "type_meta", 1, _BYTES)
    _add(one, "raw", 2, _MESSAGE, of=name)
    many = file.message_type.add(name=f"{name}_List")
    _add(many, "metadata", 1, _MESSAGE, of="ListMeta")
    _add(many, "items", 2, _MESSAGE, of=name, label=_MANY)
    whole = file.message_type.add(name=list_envelope(type_name))
    _add(whole, "type_meta", 1, _BYTES)
    _add(whole, "raw", 2, _MESSAGE, of=f"{name}_List")


def _add_type(file: FileDescriptorProto, model: Any, type_name: str) -> None:
    message = file.message_type.add(name=message_name(type_name))
    for field in model_fields(model, type_name):
        label = _ONE if field.many == "one" else _MANY
        if field.many == "map":
            _add(message, field.name, field.number, _BYTES, label=label)
        elif field.form == "number":
            kind = FieldDescriptorProto.TYPE_BOOL if field.type == "bool" else FieldDescriptorProto.TYPE_INT64
            added = _add(message, field.name, field.number, kind, label=label)
            if field.default:
                added.default_value = "true" if field.type == "bool" else str(field.default)
        elif field.form == "name":
            _add(message, field.name, field.number, _STRING, label=label)
        elif field.form == "message":
            _add(message, field.name, field.number, _MESSAGE, label=label, of=message_name(field.type))
        else:
            added = _add(message, field.name, field.number, _BYTES, label=label)
            if label == _ONE and has_presence(field):
                added.default_value = _ABSENT_ESCAPED


def has_presence(field: ModelField) -> bool:
    """Return whether a piece that is not there differs from an empty one."""
    return field.optional or field.form not in {"text", "apart"}


def _add(
    message: DescriptorProto,
    name: str,
    number: int,
    kind: FieldDescriptorProto.Type.ValueType,
    *,
    label: FieldDescriptorProto.Label.ValueType = _ONE,
    of: str = "",
) -> FieldDescriptorProto:
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if of:
        field.type_name = f".{_PACKAGE}.{of}"
    return field
