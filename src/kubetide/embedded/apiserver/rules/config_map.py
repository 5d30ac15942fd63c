"""Rules of a ConfigMap. Source: kube-apiserver v1.36.2, core/v1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kubetide.objects.field_errors import FieldError, forbidden, invalid, too_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubetide.objects.base import Json

_KEY = "[-._a-zA-Z0-9]+"
_KEY_RE = re.compile(_KEY)
_BAD_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
)
_KEY_LENGTH = 253
_BYTES = 1 << 20


def validate_config_map(obj: Json) -> list[FieldError]:
    data: dict[str, str] = obj.get("data") or {}
    binary: dict[str, str] = obj.get("binaryData") or {}
    errors = []
    for key in sorted(data):
        errors += [invalid(f"data[{key}]", key, text) for text in _key_errors(key)]
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in sorted(binary):
        errors += [invalid(f"binaryData[{key}]", key, text) for text in _key_errors(key)]
    size = sum(len(text.encode()) for text in data.values())
    # Four characters of base64 stand for three bytes, less the padding.
    size += sum(len(text) // 4 * 3 - text.count("=") for text in binary.values())
    if size > _BYTES:
        # The object as a whole, so the field has no name.
        errors.append(too_long("[]", _BYTES))
    return errors


def validate_config_map_update(obj: Json, old: Json) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = []
    if not obj.get("immutable"):
        errors.append(forbidden("immutable", "field is immutable when `immutable` is set"))
    errors += [
        forbidden(part, "field is immutable when `immutable` is set")
        for part in ("data", "binaryData")
        if (obj.get(part) or {}) != (old.get(part) or {})
    ]
    return errors


def _key_errors(key: str) -> Iterator[str]:
    if len(key) > _KEY_LENGTH:
        yield f"must be no more than {_KEY_LENGTH} characters"
    if not _KEY_RE.fullmatch(key):
        yield _BAD_KEY
    if key in {".", ".."}:
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"
