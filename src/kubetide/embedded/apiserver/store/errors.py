"""The API server's refusals, in its own words.

Source: apimachinery v1.36, pkg/api/errors; the messages of the registry strategies.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from kubetide.objects.base import Json
from kubetide.objects.field_errors import CAUSE_REASONS
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    GatewayTimeout,
    Invalid,
    NotFound,
)

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Fault(Protocol):
    """What is wrong with one field; ``str()`` is the API server's sentence about it."""

    @property
    def field(self) -> str:
        """The path of the field."""
        ...

    @property
    def type(self) -> str:
        """What is wrong, in a word or two: ``Invalid value``."""
        ...


def _details(kind: Kind[Any], name: str, *, as_kind: bool = False) -> Json:
    details: Json = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind if as_kind else kind.plural
    return details


def not_found(kind: Kind[Any], name: str) -> NotFound:
    return NotFound(f'{kind.resource} "{name}" not found', details=_details(kind, name))


def no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource")


def already_exists(kind: Kind[Any], name: str) -> AlreadyExists:
    return AlreadyExists(f'{kind.resource} "{name}" already exists', details=_details(kind, name))


def conflict(
    kind: Kind[Any], name: str, why: str = MODIFIED, *, resource: str = "", as_kind: bool = False
) -> Conflict:
    resource = resource or kind.resource
    return Conflict(
        f'Operation cannot be fulfilled on {resource} "{name}": {why}',
        details=_details(kind, name, as_kind=as_kind),
    )


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> Conflict:
    """Return the error of an apply that would change fields of others: pairs of a manager and a field."""
    causes = tuple(
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in conflicts
    )
    if len(conflicts) == 1:
        [(manager, field)] = conflicts
        return Conflict(f"Apply failed with 1 conflict: conflict with {manager}: {field}", causes=causes)
    by_manager: dict[str, list[str]] = {}
    for manager, field in conflicts:
        by_manager.setdefault(manager, []).append(f"- {field}")
    texts = [
        f"conflicts with {manager}:\n" + "\n".join(by_manager[manager]) for manager in sorted(by_manager)
    ]
    return Conflict(f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(texts), causes=causes)


def forbidden(kind: Kind[Any], name: str, why: str, *, causes: tuple[Json, ...] = ()) -> Forbidden:
    return Forbidden(
        f'{kind.resource} "{name}" is forbidden: {why}', details=_details(kind, name), causes=causes
    )


def expired(version: int, oldest: int) -> Expired:
    return Expired(f"too old resource version: {version} ({oldest})")


def too_large_version(version: int, current: int) -> GatewayTimeout:
    """Return the error of a read that asks for a version which this store has not reached."""
    text = "Too large resource version"
    return GatewayTimeout(
        f"Timeout: {text}: {version}, current: {current}",
        causes=({"reason": "ResourceVersionTooLarge", "message": text},),
        retry_after_s=1,
    )


def invalid(kind: Kind[Any], name: str, faults: Sequence[Fault]) -> Invalid:
    """``Pod "x" is invalid: ...`` with one cause per field."""
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return _invalid(title, name, _details(kind, name, as_kind=True), faults)


def version_required(kind: Kind[Any], name: str) -> Invalid:
    """Return the error of an update that names no version, of a kind that requires one. Upstream names the resource here."""
    text = "Invalid value: 0: must be specified for an update"
    field = "metadata.resourceVersion"
    return Invalid(
        f'{kind.resource} "{name}" is invalid: {field}: {text}',
        details=_details(kind, name),
        causes=({"reason": "FieldValueInvalid", "message": text, "field": field},),
    )


def not_registered(kind: str, version: str) -> str:
    """Return the words about a type that nobody knows; upstream names the line of its own scheme."""
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'


def invalid_options(options: str, faults: Sequence[Fault]) -> Invalid:
    """Return what is wrong with the options of a request: ``CreateOptions``, ``ListOptions`` and so on."""
    details = {"group": "meta.k8s.io", "kind": options}
    return _invalid(f"{options}.meta.k8s.io", "", details, faults)


def invalid_patch(value: str, why: str) -> Invalid:
    """Return the error of a patch that cannot be read, or whose result cannot."""
    text = f"Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"
    causes = ({"reason": "FieldValueInvalid", "message": text, "field": "patch"},)
    return Invalid(f' "" is invalid: patch: {text}', causes=causes)


def _invalid(title: str, name: str, details: Json, faults: Sequence[Fault]) -> Invalid:
    texts = [str(fault) for fault in faults]
    # The causes say what was found twice twice, the message says it once.
    said = list(dict.fromkeys(texts))
    what = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    causes = tuple(
        {
            "reason": CAUSE_REASONS.get(fault.type, "FieldValueInvalid"),
            "message": text.removeprefix(f"{fault.field}: "),
            "field": fault.field,
        }
        for fault, text in zip(faults, texts, strict=True)
    )
    return Invalid(f'{title} "{name}" is invalid: {what}', details=details, causes=causes)
