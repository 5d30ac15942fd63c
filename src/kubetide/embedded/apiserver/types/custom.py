"""Schemas of custom kinds as they are published: those of their definitions, with what all objects have.

Source: apiextensions-apiserver v1.36, pkg/controller/openapi/builder and pkg/apiserver/schema
(kubeopenapi, embedded resources, and what version 2 leaves out because clients before 1.27 take
offence at it).
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.custom_kinds.schema import EMBEDDED, INT_OR_STRING, PRESERVE
from kubetide.objects.api_types import OBJECT_META
from kubetide.objects.base import Json

_TEXT: Json = {"type": "string"}
_THIRD_METADATA: Json = {"allOf": [{"$ref": f"#/components/schemas/{OBJECT_META}"}]}
_SECOND_METADATA: Json = {"$ref": f"#/definitions/{OBJECT_META}"}
_COMBINED = ("allOf", "anyOf", "oneOf", "not")


def name_of(kind: CustomKind) -> str:
    """Return the name of a kind's schema: ``com.example.stable.v1.CronTab``."""
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def schema_of(kind: CustomKind) -> Json:
    """Return the schema for a document of version 3."""
    return _with_object_fields(_third(kind.schema), _THIRD_METADATA)


def second_schema_of(kind: CustomKind) -> Json:
    """Return the schema for the document of version 2."""
    if kind.schema.get(PRESERVE):
        # The members that are known must not look like all there are.
        return {"type": "object"}
    return _with_object_fields(_second(kind.schema), _SECOND_METADATA)


def _with_object_fields(schema: Json, metadata: Json) -> Json:
    properties = {**schema.get("properties", {}), "apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}
    return {**schema, "properties": dict(sorted(properties.items()))}


def _third(schema: Json) -> Json:
    found = _mapped(schema, _third)
    if schema.get(INT_OR_STRING) and "anyOf" not in schema:
        found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get(EMBEDDED):
        found = _with_object_fields(found, _THIRD_METADATA)
        found["required"] = list(dict.fromkeys((*found.get("required", ()), "kind", "apiVersion")))
    return found


def _second(schema: Json) -> Json:
    left_out = {"default", *_COMBINED}
    if schema.get("nullable"):
        # Neither null nor its type is known to version 2, so that anything goes.
        left_out |= {"nullable", "type", "items", "properties", "additionalProperties"}
    if schema.get(PRESERVE):
        left_out |= {"type", "items", "properties", "additionalProperties"}
    return _mapped({name: value for name, value in schema.items() if name not in left_out}, _second)


def _mapped(schema: Json, change: Any) -> Json:
    """Return the schema with those within it that shape the object changed."""
    found = dict(schema)
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: change(member) for name, member in found["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = change(found[name])
    return found
