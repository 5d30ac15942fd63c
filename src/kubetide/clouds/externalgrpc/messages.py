"""The protocol's messages, made at import from ``protocol.proto`` beside this file: no generated code to keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kubetide.objects.protobuf_encoding import tagged

PACKAGE: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc"
SERVICE: Final = f"{PACKAGE}.CloudProvider"

_RPC: Final = re.compile(r"rpc (\w+)\((\w+)\) returns \((\w+)\)")
_FIELD: Final = re.compile(r"(repeated )?(map<string, ([\w.]+)>|[\w.]+) (\w+) = (\d+);")
_VALUE: Final = re.compile(r"(\w+) = (\d+);")
_SCALARS: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}
_NEEDED: Final = (any_pb2, duration_pb2, timestamp_pb2)


def proto_text() -> str:
    """Return the protocol as text, for other languages' generators."""
    return files(__package__).joinpath("protocol.proto").read_text(encoding="utf-8")


def file_descriptor(text: str, package: str = PACKAGE) -> FileDescriptorProto:
    """Return the descriptor of a protocol that is written in the few forms of ours, one thing a line."""
    file = FileDescriptorProto(name=f"kubetide/{package}.proto", package=package, syntax="proto3")
    file.dependency.extend(module.DESCRIPTOR.name for module in _NEEDED)
    message: DescriptorProto | None = None
    enum: Any = None
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("message "):
            message = file.message_type.add(name=line.split()[1])
            message = None if line.endswith("{}") else message
        elif message is None:
            continue
        elif line.startswith("enum "):
            enum = message.enum_type.add(name=line.split()[1])
        elif line == "}":
            message, enum = (message, None) if enum is not None else (None, None)
        elif enum is not None and (value := _VALUE.fullmatch(line)):
            enum.value.add(name=value[1], number=int(value[2]))
        elif field := _FIELD.fullmatch(line):
            _add(message, field, package)
    return file


def _add(message: DescriptorProto, field: re.Match[str], package: str) -> None:
    repeated, kind, held, name, number = field.groups()
    one = message.field.add(name=name, number=int(number), label=FieldDescriptorProto.LABEL_OPTIONAL)
    if repeated or held:
        one.label = FieldDescriptorProto.LABEL_REPEATED
    if held:
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        for part, (key, type_name) in enumerate((("key", "string"), ("value", held)), 1):
            _set_type(
                entry.field.add(name=key, number=part, label=FieldDescriptorProto.LABEL_OPTIONAL),
                type_name,
                message,
                package,
            )
        kind = f"{message.name}.{entry.name}"
    _set_type(one, kind, message, package)


def _set_type(field: FieldDescriptorProto, kind: str, message: DescriptorProto, package: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    nested = any(enum.name == kind for enum in message.enum_type)
    field.type = FieldDescriptorProto.TYPE_ENUM if nested else FieldDescriptorProto.TYPE_MESSAGE
    within = f"{package}.{message.name}" if nested else package
    field.type_name = f".{kind}" if kind.startswith("google.") else f".{within}.{kind}"


def message_types(text: str, package: str = PACKAGE) -> Mapping[str, Any]:
    """Return the message classes of a protocol by name."""
    pool = descriptor_pool.DescriptorPool()
    for module in _NEEDED:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = file_descriptor(text, package)
    pool.AddSerializedFile(file.SerializeToString())
    return {
        one.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{one.name}"))
        for one in file.message_type
    }


MESSAGES: Final[Mapping[str, Any]] = message_types(proto_text())
"""Message classes by name."""


def method_types(text: str) -> Mapping[str, tuple[str, str]]:
    """Return the names of request and response by method."""
    return {found[1]: (found[2], found[3]) for found in _RPC.finditer(text)}


METHODS: Final = method_types(proto_text())
"""The names of request and response by method."""


def encode(message: Any) -> bytes:
    """Return a message's bytes as upstream's language writes them: maps sorted by the bytes of their keys."""
    pieces: list[bytes] = []
    for field, value in message.ListFields():
        if field.message_type is None:
            pieces.append(type(message)(**{field.name: value}).SerializeToString())
        elif field.message_type.GetOptions().map_entry:
            # The library's own sorted form puts an empty key last.
            pieces += [
                tagged(field.number, tagged(1, key.encode()) + tagged(2, _held(value[key])))
                for key in sorted(value, key=str.encode)
            ]
        else:
            pieces += [tagged(field.number, encode(one)) for one in (value if _is_list(value) else (value,))]
    return b"".join(pieces)


def _held(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else encode(value)


def _is_list(value: Any) -> bool:
    return not hasattr(value, "ListFields")
