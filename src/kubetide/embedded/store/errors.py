"""The API server's refusals, in its own words.

Source: apimachinery v1.36, pkg/api/errors; the messages of the registry strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import AlreadyExists, BadRequest, Conflict, Expired, Forbidden, Invalid, NotFound

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


# What the field errors' types are called in the causes of a Status.
_CAUSES = {
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Invalid value": "FieldValueInvalid",
    "Not found": "FieldValueNotFound",
    "Required value": "FieldValueRequired",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Unsupported value": "FieldValueNotSupported",
}


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


def conflict(kind: Kind[Any], name: str, why: str = MODIFIED, *, resource: str = "") -> Conflict:
    resource = resource or kind.resource
    return Conflict(
        f'Operation cannot be fulfilled on {resource} "{name}": {why}', details=_details(kind, name)
    )


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> Conflict:
    """What an apply is told that would change fields of others: pairs of a manager and a field."""
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


def field_not_supported(kind: Kind[Any], labels: str, fields: str, path: str) -> BadRequest:
    return BadRequest(
        f'Unable to find "{kind.group}/{kind.version}, Resource={kind.plural}" that match label selector '
        f'"{labels}", field selector "{fields}": field label not supported: {path}'
    )


def invalid(kind: Kind[Any], name: str, faults: Sequence[Fault]) -> Invalid:
    """``Pod "x" is invalid: ...`` with one cause per field."""
    texts = [str(fault) for fault in faults]
    what = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = tuple(
        {
            "reason": _CAUSES.get(fault.type, "FieldValueInvalid"),
            "message": text.removeprefix(f"{fault.field}: "),
            "field": fault.field,
        }
        for fault, text in zip(faults, texts, strict=True)
    )
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Invalid(
        f'{title} "{name}" is invalid: {what}', details=_details(kind, name, as_kind=True), causes=causes
    )
