"""The OpenAPI v2 document, for kubectl before 1.27: it validates and explains by no other.

Source: OpenAPI v2 as kube-apiserver publishes it at ``/openapi/v2``; its protobuf form is that of
gnostic's OpenAPIv2.proto, of which the fields in use are named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.types import custom
from kubetide.embedded.apiserver.types.openapi import document
from kubetide.objects.api_types import INT_OR_STRING, QUANTITY
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind

# Clients ask with an @, which no parser of media types takes in an answer.
ASKED_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_GVK = "x-kubernetes-group-version-kind"
_INFO = {"title": "Kubernetes", "version": "v1.36.0"}


def document_v2(kinds: Sequence[Kind[Any]]) -> Json:
    """Return the document of all kinds: definitions, and of the paths their patches.

    By the parameters of the patch kubectl before 1.27 knows whether a kind can be tried out (dryRun).
    """
    definitions: Json = {}
    patches: Json = {}
    customs = {custom.name_of(kind): kind for kind in kinds if isinstance(kind, CustomKind)}
    for path in dict.fromkeys(
        f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}" for kind in kinds
    ):
        found = document(path, kinds)
        assert found is not None, "the path is that of a kind"
        patches |= {
            path: {"patch": _patch(item["patch"])} for path, item in found["paths"].items() if "patch" in item
        }
        for name, schema in found["components"]["schemas"].items():
            if name in customs:
                definitions[name] = {**custom.second_schema_of(customs[name]), _GVK: schema[_GVK]}
            elif name not in definitions or _GVK in schema:
                definitions[name] = _definition(name, schema)
    return {"swagger": "2.0", "info": _INFO, "paths": patches, "definitions": definitions}


def _definition(name: str, schema: Json) -> Json:
    if name == QUANTITY:
        return {"type": "string"}
    if name == INT_OR_STRING:
        return {"type": "string", "format": "int-or-string"}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        # The members that are known must not look like all there are.
        schema = {key: value for key, value in schema.items() if key != "properties"}
    return {key: _second(value) for key, value in schema.items()}


def _second(value: Any) -> Any:
    """Return a part of a schema with references as version 2 writes them."""
    if isinstance(value, list):
        return [_second(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "allOf" in value:
        return {"$ref": value["allOf"][0]["$ref"].replace("#/components/schemas/", "#/definitions/")}
    return {key: _second(member) for key, member in value.items()}


def _patch(operation: Json) -> Json:
    return {
        _GVK: operation[_GVK],
        "parameters": [
            {"name": one["name"], "in": "query", "type": "string"} for one in operation["parameters"]
        ],
        "responses": {"200": {"description": "OK"}},
    }


def protobuf_v2(found: Json) -> bytes:
    """Return the document in its protobuf form."""
    info = _field(1, found["info"]["title"]) + _field(2, found["info"]["version"])
    named = b"".join(_field(1, _named(name, schema)) for name, schema in found["definitions"].items())
    paths = b"".join(
        _field(2, _field(1, path) + _field(2, _field(8, _operation(item["patch"]))))
        for path, item in found["paths"].items()
    )
    return _field(1, found["swagger"]) + _field(2, info) + _field(8, paths) + _field(9, named)


def _operation(operation: Json) -> bytes:
    """Return parameters of the query, each three messages deep, and the kind that is meant."""
    parameters = b"".join(
        _field(8, _field(1, _field(2, _field(3, _query_parameter(one))))) for one in operation["parameters"]
    )
    return parameters + _field(13, _extension(_GVK, operation[_GVK]))


def _query_parameter(one: Json) -> bytes:
    return _field(2, one["in"]) + _field(4, one["name"]) + _field(6, one["type"])


def _extension(name: str, value: Any) -> bytes:
    # Every JSON text is a YAML text.
    return _field(1, name) + _field(2, _field(2, msgspec.json.encode(value)))


def _named(name: str, schema: Json) -> bytes:
    return _field(1, name) + _field(2, _schema(schema))


def _schema(schema: Json) -> bytes:
    out = b""
    if "$ref" in schema:
        out += _field(1, schema["$ref"])
    if "format" in schema:
        out += _field(2, schema["format"])
    if schema.get("description"):
        out += _field(4, schema["description"])
    out += b"".join(_field(19, name) for name in schema.get("required", ()))
    if "additionalProperties" in schema:
        out += _field(21, _field(1, _schema(schema["additionalProperties"])))
    if "type" in schema:
        out += _field(22, _field(1, schema["type"]))
    if "items" in schema:
        out += _field(23, _field(1, _schema(schema["items"])))
    if "properties" in schema:
        members = (_field(1, _named(name, member)) for name, member in schema["properties"].items())
        out += _field(25, b"".join(members))
    if _GVK in schema:
        out += _field(31, _extension(_GVK, schema[_GVK]))
    return out


def _field(number: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
