"""Whether the words of a schema have values of their JSON types, on which all that reads a schema relies.

Source: apiextensions v1.36, JSONSchemaProps.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.manifests.structure import json_type
from kubetide.objects.field_errors import FieldError, invalid

_WORDS: dict[str, tuple[str, ...]] = {
    "a text": (
        "$ref",
        "description",
        "format",
        "id",
        "pattern",
        "title",
        "type",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ),
    "a number": ("maximum", "minimum", "multipleOf"),
    "a whole number of 0 or more": (
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
    ),
    "true or false": (
        "exclusiveMaximum",
        "exclusiveMinimum",
        "nullable",
        "uniqueItems",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    ),
    "a list": ("allOf", "anyOf", "enum", "oneOf", "x-kubernetes-validations"),
    "a list of texts": ("required", "x-kubernetes-list-map-keys"),
    "a map": ("not", "properties"),
}
_EXPECTED = {word: expected for expected, words in _WORDS.items() for word in words}


def word_faults(schema: Any, at: str) -> list[FieldError]:
    """Return the words of one schema, without those within it, that have a value of another type."""
    if not isinstance(schema, dict):
        return [invalid(at, schema, "must be an object")]
    return [
        invalid(f"{at}.{word}", value, f"must be {_EXPECTED[word]}, not {json_type(value)}")
        for word, value in schema.items()
        if value is not None and word in _EXPECTED and not _is(value, _EXPECTED[word])
    ]


def _is(value: Any, expected: str) -> bool:
    match expected:
        case "a text":
            return isinstance(value, str)
        case "a number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "a whole number of 0 or more":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "true or false":
            return isinstance(value, bool)
        case "a map":
            return isinstance(value, dict)
        case "a list of texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, list)
