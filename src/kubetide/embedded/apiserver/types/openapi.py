"""OpenAPI v3 documents of what is served, a document a group and version.

They say enough for ``kubectl explain``, ``kubectl apply`` and client-side tools: every field with its
type, and which writes know ``fieldValidation``. Built-in kinds come without descriptions, custom kinds
with all that their definitions say.
Source: OpenAPI v3 as kube-apiserver v1.36 publishes it at ``/openapi/v3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.types import custom
from kubetide.objects.api_types import (
    DURATION,
    FIELDS_V1,
    INT_OR_STRING,
    META,
    MICRO_TIME,
    OBJECT_META,
    QUANTITY,
    RAW_EXTENSION,
    TIME,
    api_types,
    fields_of,
    type_of_kind,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind

_BASIC: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}

_SPECIAL: dict[str, Json] = {
    TIME: {"type": "string", "format": "date-time"},
    MICRO_TIME: {"type": "string", "format": "date-time"},
    DURATION: {"type": "string"},
    FIELDS_V1: {"type": "object"},
    RAW_EXTENSION: {"type": "object"},
    QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
}

_WRITES = ("post", "put", "patch")
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


def index(kinds: Sequence[Kind[Any]]) -> Json:
    """Return the list of documents, each address with a hash by which clients cache it."""
    paths: Json = {}
    for kind in kinds:
        path = _root(kind)
        if path not in paths:
            digest = sha256(msgspec.json.encode(document(path, kinds))).hexdigest()[:32]
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest.upper()}"}
    return {"paths": paths}


def document(path: str, kinds: Sequence[Kind[Any]]) -> Json | None:
    """Return the document of ``api/v1`` or ``apis/<group>/<version>``, None where nothing is served."""
    chosen = [kind for kind in kinds if _root(kind) == path]
    if not chosen:
        return None
    schemas: Json = {}
    paths: Json = {}
    for kind in chosen:
        if isinstance(kind, CustomKind):
            name = custom.name_of(kind)
            schemas[name] = custom.schema_of(kind)
            _add_schemas(schemas, OBJECT_META)
        else:
            name = (
                type_of_kind(kind)
                or f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"
            )
            _add_schemas(schemas, name)
        schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": [_gvk(kind)]}
        paths |= _paths(kind, name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _root(kind: Kind[Any]) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _gvk(kind: Kind[Any]) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _add_schemas(schemas: Json, name: str) -> None:
    """Add a type and all that it refers to."""
    todo = [name]
    while todo:
        current = todo.pop()
        if current not in schemas:
            schemas[current] = _schema(current)
            todo += [field.type.lstrip("[]{}") for field in fields_of(current) if "." in field.type]


def _schema(name: str) -> Json:
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name not in api_types():
        return _free_schema()
    properties: Json = {field.name: _reference(field.type) for field in fields_of(name)}
    if OBJECT_META in {field.type for field in fields_of(name)} or name == f"{META}.DeleteOptions":
        properties = {"apiVersion": _BASIC["string"], "kind": _BASIC["string"], **properties}
    return {"type": "object", "properties": properties}


def _free_schema() -> Json:
    """Return the schema of a kind of which no type is known."""
    return {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "apiVersion": _BASIC["string"],
            "kind": _BASIC["string"],
            "metadata": {"type": "object"},
        },
    }


def _reference(kind: str) -> Json:
    if kind.startswith("[]"):
        return {"type": "array", "items": _reference(kind[2:])}
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _reference(kind[2:])}
    if kind in _BASIC:
        return _BASIC[kind]
    # Beside a bare reference nothing may stand in OpenAPI 3.0, so it is wrapped as upstream wraps it.
    return {"allOf": [{"$ref": f"#/components/schemas/{kind}"}]}


def _paths(kind: Kind[Any], name: str) -> Json:
    collection = f"/{_root(kind)}/"
    if kind.namespaced:
        collection += "namespaces/{namespace}/"
    collection += kind.plural
    reference = {"$ref": f"#/components/schemas/{name}"}
    return {
        collection: {"get": _operation(kind, "list", reference), "post": _operation(kind, "post", reference)},
        collection + "/{name}": {
            verb: _operation(kind, verb, reference) for verb in ("get", "put", "patch", "delete")
        },
    }


def _operation(kind: Kind[Any], verb: str, reference: Json) -> Json:
    names = _PARAMETERS if verb in _WRITES else ()
    return {
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _gvk(kind),
        "parameters": [{"name": text, "in": "query", "schema": {"type": "string"}} for text in names],
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": reference}}},
        },
    }
