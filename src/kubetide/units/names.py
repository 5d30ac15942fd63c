"""Which names, label keys and label values Kubernetes accepts, and its words when it does not.

The ``*_errors`` functions give messages as the API server words them, none when the text is good.
Source: apimachinery v1.36, util/validation.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NAME = "[A-Za-z0-9]"
_QUALIFIED = f"({_NAME}[-A-Za-z0-9_.]*)?{_NAME}"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_VALUE = f"({_QUALIFIED})?"

_QUALIFIED_RE = re.compile(_QUALIFIED)
_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_LABEL_VALUE_RE = re.compile(_LABEL_VALUE)

_KEPT = 512
"""Longer texts are not cached: they may be megabytes."""

_ENDS = "and must start and end with an alphanumeric character"
_QUALIFIED_TEXT = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


def _regex_text(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(limit: int, unit: str = "bytes") -> str:
    return f"must be no more than {limit} {unit}"


_BAD_QUALIFIED = _regex_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
_BAD_LABEL_VALUE = _regex_text(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_BAD_LABEL = _regex_text(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_BAD_SUBDOMAIN = _regex_text(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)


_BAD_1035_LABEL = _regex_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _1035_LABEL,
    "my-name",
    "abc-123",
)


def label_key_errors(text: str) -> tuple[str, ...]:
    """Check a qualified name, as label and annotation keys and resource names are."""
    return _label_key_errors(text) if len(text) <= _KEPT else _label_key_errors.__wrapped__(text)


@lru_cache(maxsize=1 << 12)
def _label_key_errors(text: str) -> tuple[str, ...]:
    prefix, slash, name = text.partition("/")
    errors: list[str] = []
    if not slash:
        name = prefix
    elif "/" in name:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_BAD_QUALIFIED} {optional}",)
    elif not prefix:
        errors.append("prefix part must be non-empty")
    else:
        errors.extend(f"prefix part {error}" for error in dns1123_subdomain_errors(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        errors.append(f"name part {_too_long(63)}")
    if not _QUALIFIED_RE.fullmatch(name):
        errors.append(f"name part {_BAD_QUALIFIED}")
    return tuple(errors)


def label_value_errors(text: str) -> tuple[str, ...]:
    """Check a label value; the empty text is one."""
    return _label_value_errors(text) if len(text) <= _KEPT else _label_value_errors.__wrapped__(text)


@lru_cache(maxsize=1 << 12)
def _label_value_errors(text: str) -> tuple[str, ...]:
    errors = []
    if len(text.encode()) > 63:
        errors.append(_too_long(63))
    if not _LABEL_VALUE_RE.fullmatch(text):
        errors.append(_BAD_LABEL_VALUE)
    return tuple(errors)


def dns1123_label_errors(text: str) -> tuple[str, ...]:
    """Check a name without dots, as namespaces and containers have: at most 63 bytes."""
    return _label_errors(text) if len(text) <= _KEPT else _label_errors.__wrapped__(text)


@lru_cache(maxsize=1 << 12)
def _label_errors(text: str) -> tuple[str, ...]:
    errors = []
    if len(text.encode()) > 63:
        errors.append(_too_long(63, "characters"))
    if not _LABEL_RE.fullmatch(text):
        errors.append("must not contain dots" if _SUBDOMAIN_RE.fullmatch(text) else _BAD_LABEL)
    return tuple(errors)


def dns1123_subdomain_errors(text: str) -> tuple[str, ...]:
    """Check a name that may have dots, as most objects have: at most 253 bytes."""
    return _subdomain_errors(text) if len(text) <= _KEPT else _subdomain_errors.__wrapped__(text)


@lru_cache(maxsize=1 << 12)
def _subdomain_errors(text: str) -> tuple[str, ...]:
    errors = []
    if len(text.encode()) > 253:
        errors.append(_too_long(253, "characters"))
    if not _SUBDOMAIN_RE.fullmatch(text):
        errors.append(_BAD_SUBDOMAIN)
    return tuple(errors)


def dns1035_label_errors(text: str) -> tuple[str, ...]:
    """Check a name without dots that begins with a letter, as API versions do: at most 63 bytes."""
    errors = []
    if len(text.encode()) > 63:
        errors.append(_too_long(63))
    if not re.fullmatch(_1035_LABEL, text):
        errors.append(_BAD_1035_LABEL)
    return tuple(errors)


def port_name_errors(text: str) -> tuple[str, ...]:
    """Check an IANA service name, as named container ports have: at most 15 characters."""
    errors = []
    if len(text) > 15:
        errors.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", text):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def valid_label_key(text: str) -> bool:
    """Return whether the text can be the key of a label."""
    return not label_key_errors(text)


def valid_label_value(text: str) -> bool:
    """Return whether the text can be the value of a label."""
    return not label_value_errors(text)
