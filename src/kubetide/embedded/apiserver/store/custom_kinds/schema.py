"""Structural schemas: what objects of a custom kind look like, what is filled in and what is cut off.

A schema is the JSON of ``openAPIV3Schema``. Not evaluated are rules in CEL
(``x-kubernetes-validations``) and formats other than ``date-time``, ``int32`` and ``int64``.

Source: apiextensions-apiserver v1.36, pkg/apiserver/schema (structural, pruning, defaulting) and
validation; the messages are those of kube-openapi's validator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from kubetide.embedded.apiserver.manifests.upstream_fields import UPSTREAM_FIELDS
from kubetide.embedded.apiserver.store.custom_kinds.schema_words import word_faults
from kubetide.objects.base import Json
from kubetide.objects.field_errors import (
    TYPE_INVALID,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kubetide.objects.meta import ObjectMeta
from kubetide.units.patch import same_json
from kubetide.units.time import parse_rfc3339

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_COMBINED = ("allOf", "anyOf", "oneOf")
# What a schema below allOf and its like may not say, because it does not shape the object.
_NOT_COMBINED = ("type", "default", "additionalProperties", "nullable", "description", "title", PRESERVE)
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id")
_ROOT_KEPT = ("apiVersion", "kind", "metadata")
_METADATA = UPSTREAM_FIELDS[ObjectMeta] | {one.encode_name for one in msgspec.structs.fields(ObjectMeta)}
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


# ── The schema itself ───────────────────────────────────────────────────────────────────────────


def schema_faults(schema: Any, at: str, *, root: bool = True) -> list[FieldError]:
    """Return what keeps a schema from being structural."""
    wrong = word_faults(schema, at)
    if wrong:
        return wrong
    faults = [
        forbidden(f"{at}.{name}", f"{name} is not supported") for name in _UNSUPPORTED if name in schema
    ]
    kind = schema.get("type")
    if schema.get("uniqueItems"):
        faults.append(
            forbidden(
                f"{at}.uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            )
        )
    if root and kind != "object":
        faults.append(
            invalid(f"{at}.type", kind or "", "must be object at the root")
            if kind
            else required(f"{at}.type", "must not be empty at the root")
        )
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        faults.append(required(f"{at}.type", "must not be empty for specified object fields"))
    elif kind and kind not in _TYPES:
        faults.append(unsupported(f"{at}.type", kind, _TYPES))
    if schema.get("properties") and schema.get("additionalProperties"):
        faults.append(
            forbidden(
                f"{at}.additionalProperties", "additionalProperties and properties are mutual exclusive"
            )
        )
    if kind == "array" and not isinstance(schema.get("items"), dict):
        faults.append(required(f"{at}.items", "must be specified"))
    faults += _pattern_faults(schema, at) + _list_faults(schema, at)
    for name, child, inner in _children(schema):
        faults += (
            schema_faults(child, f"{at}{name}", root=False)
            if inner
            else _combined_faults(child, f"{at}{name}")
        )
    if not faults and "default" in schema:
        value = schema["default"]
        if not same_json(pruned(value, schema), value):
            faults.append(invalid(f"{at}.default", value, "must not contain unknown fields"))
        faults += [invalid(f"{at}.default", value, str(fault)) for fault in faults_in(value, schema, "")]
    return faults


def _children(schema: Json) -> Iterator[tuple[str, Any, bool]]:
    """Yield the schemas within a schema, and whether each shapes the object."""
    properties = schema.get("properties")
    for name, child in properties.items() if isinstance(properties, dict) else ():
        yield f".properties[{name}]", child, True
    if isinstance(schema.get("additionalProperties"), dict):
        yield ".additionalProperties", schema["additionalProperties"], True
    if isinstance(schema.get("items"), dict):
        yield ".items", schema["items"], True
    for word in _COMBINED:
        for index, child in enumerate(schema.get(word) or ()):
            yield f".{word}[{index}]", child, False
    if isinstance(schema.get("not"), dict):
        yield ".not", schema["not"], False


def _combined_faults(schema: Any, at: str) -> list[FieldError]:
    wrong = word_faults(schema, at)
    if wrong:
        return wrong
    # Upstream makes one exception: the two types of an int-or-string.
    names = [name for name in _NOT_COMBINED if name in schema and not (name == "type" and len(schema) == 1)]
    faults = [forbidden(f"{at}.{name}", "must be empty to be structural") for name in names]
    for name, child, _ in _children(schema):
        faults += _combined_faults(child, f"{at}{name}")
    return faults + _pattern_faults(schema, at)


def _pattern_faults(schema: Json, at: str) -> list[FieldError]:
    pattern = schema.get("pattern")
    if pattern is None:
        return []
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        return [invalid(f"{at}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")]
    return []


def _list_faults(schema: Json, at: str) -> list[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind is not None and kind not in {"atomic", "set", "map"}:
        return [unsupported(f"{at}.x-kubernetes-list-type", kind, ("atomic", "map", "set"))]
    if kind == "map" and not keys:
        return [
            required(f"{at}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
        ]
    if keys and kind != "map":
        return [
            forbidden(
                f"{at}.x-kubernetes-list-map-keys", "must be empty if x-kubernetes-list-type is not map"
            )
        ]
    return []


# ── Cutting off and filling in ──────────────────────────────────────────────────────────────────


def pruned(value: Any, schema: Json, *, root: bool = False) -> Any:
    """Return the value without the fields that the schema does not know."""
    if isinstance(value, list):
        items = schema.get("items")
        return [pruned(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    keep = bool(schema.get(PRESERVE)) or more is True
    root = root or bool(schema.get(EMBEDDED))
    result = {}
    for key, member in value.items():
        if root and key in _ROOT_KEPT:
            result[key] = _known_metadata(member) if key == "metadata" else member
        elif key in properties:
            result[key] = pruned(member, properties[key])
        elif isinstance(more, dict):
            result[key] = pruned(member, more)
        elif keep:
            result[key] = member
    return result


def _known_metadata(metadata: Any) -> Any:
    if not isinstance(metadata, dict) or metadata.keys() <= _METADATA:
        return metadata
    return {name: value for name, value in metadata.items() if name in _METADATA}


def defaulted(value: Any, schema: Json) -> Any:
    """Return the value with the schema's defaults where something is missing."""
    if isinstance(value, list):
        items = schema.get("items")
        return [defaulted(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    result = {}
    for key, member in value.items():
        child = properties.get(key, more if isinstance(more, dict) else {})
        if member is None and "default" in child and not child.get("nullable"):
            continue  # null asks for the default
        result[key] = defaulted(member, child)
    for key, child in properties.items():
        if key not in result and "default" in child:
            result[key] = defaulted(child["default"], child)
    return result


# ── Validation ──────────────────────────────────────────────────────────────────────────────────


ABSENT = object()
"""Stands for no value where null is one."""


def faults_in(value: Any, schema: Json, at: str, old: Any = ABSENT) -> list[FieldError]:
    """Return every rule of the schema that the value breaks.

    ``old`` is what stands there before an update: what has not changed is not held against it, so
    that an object from before a stricter schema can still be written (KEP-4008, ratcheting).
    """
    if value is None and schema.get("nullable"):
        return []
    if old is not ABSENT and same_json(value, old):
        return []
    wrong = _type_fault(value, schema, at)
    if wrong is not None:
        return [wrong]
    faults: list[FieldError] = []
    choices = schema.get("enum")
    if choices is not None and not any(same_json(value, choice) for choice in choices):
        faults.append(unsupported(at, value, [str(choice) for choice in choices], in_order=True))
    if isinstance(value, str):
        faults += _text_faults(value, schema, at)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        faults += _number_faults(value, schema, at)
    elif isinstance(value, list):
        faults += _items_faults(value, schema, at, old)
    elif isinstance(value, dict):
        faults += _object_faults(value, schema, at, old)
    return faults + _combination_faults(value, schema, at)


def _type_fault(value: Any, schema: Json, at: str) -> FieldError | None:
    kind = schema.get("type")
    if schema.get(INT_OR_STRING):
        fits = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        kind = "integer,string"
    else:
        fits = not kind or _has_type(value, kind)
    if fits:
        return None
    got = _type_of(value)
    return FieldError(at, TYPE_INVALID, got, f'{_name(at)} must be of type {kind}: "{got}"')


def _has_type(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return _type_of(value) == kind


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _text_faults(value: str, schema: Json, at: str) -> list[FieldError]:
    faults = []
    if len(value) > schema.get("maxLength", len(value)):
        faults.append(too_long(at, schema["maxLength"]))
    if len(value) < schema.get("minLength", 0):
        faults.append(invalid(at, value, f"{_name(at)} should be at least {schema['minLength']} chars long"))
    pattern = schema.get("pattern")
    if pattern is not None and not re.search(pattern, value):
        faults.append(invalid(at, value, f"{_name(at)} should match '{pattern}'"))
    if schema.get("format") == "date-time":
        try:
            parse_rfc3339(value)
        except ValueError:
            faults.append(invalid(at, value, f'{_name(at)} must be of type date-time: "{value}"'))
    return faults


def _number_faults(value: float, schema: Json, at: str) -> list[FieldError]:
    faults = []
    for word, sign, exclusive, text in (
        ("minimum", 1, "exclusiveMinimum", "greater than"),
        ("maximum", -1, "exclusiveMaximum", "less than"),
    ):
        limit = schema.get(word)
        if limit is None:
            continue
        beyond = (value - limit) * sign
        if beyond < 0 or (beyond == 0 and schema.get(exclusive)):
            bound = text if schema.get(exclusive) else f"{text} or equal to"
            faults.append(invalid(at, value, f"{_name(at)} should be {bound} {limit}"))
    step = schema.get("multipleOf")
    if step and value % step:
        faults.append(invalid(at, value, f"{_name(at)} should be a multiple of {step}"))
    low, high = _RANGES.get(schema.get("format") or "", (value, value))
    if schema.get("type") == "integer" and not low <= value <= high:
        faults.append(invalid(at, value, f"{_name(at)} must be of type {schema['format']}: {value}"))
    return faults


def _items_faults(value: list[Any], schema: Json, at: str, old: Any) -> list[FieldError]:
    faults = []
    if len(value) > schema.get("maxItems", len(value)):
        faults.append(FieldError(at, "Too many", len(value), f"must have at most {schema['maxItems']} items"))
    if len(value) < schema.get("minItems", 0):
        faults.append(invalid(at, len(value), f"{_name(at)} should have at least {schema['minItems']} items"))
    keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None
    if keys or schema.get("x-kubernetes-list-type") == "set":
        seen: list[Any] = []
        properties = (schema.get("items") or {}).get("properties") or {}
        for index, item in enumerate(value):
            known = item
            if keys and isinstance(item, dict):
                known = {key: item.get(key, (properties.get(key) or {}).get("default")) for key in keys}
            if any(same_json(known, other) for other in seen):
                faults.append(duplicate(f"{at}[{index}]", known))
            seen.append(known)
    before = _old_items(old, keys)
    for index, item in enumerate(value):
        was = before.get(_item_key(item, keys), ABSENT) if keys else ABSENT
        faults += faults_in(item, schema.get("items") or {}, f"{at}[{index}]", was)
    return faults


def _old_items(old: Any, keys: Any) -> dict[str, Any]:
    """Return the items of a list before, by their keys; items of other lists have no before."""
    return {_item_key(item, keys): item for item in old} if keys and isinstance(old, list) else {}


def _item_key(item: Any, keys: Any) -> str:
    return repr([item.get(key) for key in keys]) if isinstance(item, dict) else ""


def _object_faults(value: Json, schema: Json, at: str, old: Any) -> list[FieldError]:
    faults = [
        required(_joined(at, name))
        for name in schema.get("required") or ()
        if value.get(name) is None
        and not (name in value and ((schema.get("properties") or {}).get(name) or {}).get("nullable"))
    ]
    if len(value) > schema.get("maxProperties", len(value)):
        faults.append(
            FieldError(at, "Too many", len(value), f"must have at most {schema['maxProperties']} items")
        )
    if len(value) < schema.get("minProperties", 0):
        faults.append(
            invalid(at, len(value), f"{_name(at)} should have at least {schema['minProperties']} properties")
        )
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, member in sorted(value.items()):
        child = properties.get(key, more)
        missing = member is None and key in (schema.get("required") or ())
        if isinstance(child, dict) and not (missing and not child.get("nullable")):
            was = old.get(key, ABSENT) if isinstance(old, dict) else ABSENT
            faults += faults_in(member, child, _joined(at, key), was)
    return faults


def _combination_faults(value: Any, schema: Json, at: str) -> list[FieldError]:
    faults = []
    for part in schema.get("allOf") or ():
        faults += faults_in(value, part, at)
    any_of, one_of = schema.get("anyOf"), schema.get("oneOf")
    if any_of and all(faults_in(value, part, at) for part in any_of):
        faults.append(invalid(at, value, f'"{at}" must validate at least one schema (anyOf)'))
    if one_of:
        fitting = sum(not faults_in(value, part, at) for part in one_of)
        if fitting != 1:
            found = "Found none valid" if not fitting else f"Found {fitting} valid alternatives"
            faults.append(
                invalid(at, value, f'"{at}" must validate one and only one schema (oneOf). {found}')
            )
    if isinstance(schema.get("not"), dict) and not faults_in(value, schema["not"], at):
        faults.append(invalid(at, value, f'"{at}" must not validate the schema (not)'))
    return faults


def _name(at: str) -> str:
    return f"{at} in body"


def _joined(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
