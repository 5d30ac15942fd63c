"""From an HTTP request to the options and the body of a request to the REST semantics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from kubetide.embedded.server.refusals import (
    JSON_TYPE,
    YAML_TYPE,
    invalid_patch,
    unsupported_media_type,
)
from kubetide.embedded.server.strict import duplicate_fields, unknown_fields
from kubetide.embedded.server.types.protobuf import MEDIA_TYPE, decode_protobuf
from kubetide.embedded.store.custom import CustomKind
from kubetide.embedded.store.request import Options
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.ports.cluster import PatchType, Propagation
from kubetide.ports.errors import BadRequest

Query = Mapping[str, str]

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body; the limit of kube-apiserver v1.36."""

AnyPatchType = PatchType | Literal["apply"]

_PATCH_TYPES: dict[str, AnyPatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}

_PROPAGATIONS = frozenset({"Background", "Foreground", "Orphan"})


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, and the warnings that go with the answer."""

    value: Any
    warnings: tuple[str, ...] = ()


def list_options(query: Query, *, name: str = "") -> Options:
    """Gives the options of a list, watch or deletecollection; ``name`` narrows them to one object."""
    fields = query.get("fieldSelector", "")
    if name:
        own = f"metadata.name={name}"
        fields = f"{fields},{own}" if fields else own
    return Options(
        labels=query.get("labelSelector", ""),
        fields=fields,
        resource_version=query.get("resourceVersion", ""),
        limit=whole_number(query, "limit") or 0,
        continue_token=query.get("continue", ""),
    )


def write_options(query: Query, patch_type: AnyPatchType = "merge") -> Options:
    """Gives the options of a create, replace or patch. Raises BadRequest."""
    return Options(
        patch_type=patch_type,
        field_manager=query.get("fieldManager", ""),
        force=flag(query, "force"),
        dry_run=_dry_run(query.get("dryRun", "")),
    )


def delete_options(query: Query, body: Any) -> Options:
    """Gives the options of a delete: those of a DeleteOptions body, else those of the query. Raises BadRequest."""
    said: Json = body if isinstance(body, dict) else {}
    grace = said.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = whole_number(query, "gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise BadRequest(f"gracePeriodSeconds is a whole number, not {grace!r}")
    required = said.get("preconditions") or {}
    policy = said.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = said.get("orphanDependents")
    if not policy:
        policy = "Orphan" if orphan else "Background"
    if policy not in _PROPAGATIONS:
        raise BadRequest(
            f'DeleteOptions: propagationPolicy: Unsupported value: "{policy}": supported values: '
            '"Background", "Foreground", "Orphan"'
        )
    dry_run = said.get("dryRun") or ()
    return Options(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        uid=required.get("uid") or "",
        resource_version=required.get("resourceVersion") or "",
        grace_period_s=grace,
        propagation=cast("Propagation", policy),
        dry_run=_dry_run(dry_run[0] if dry_run else query.get("dryRun", "")),
    )


def whole_number(query: Query, name: str) -> int | None:
    """Gives a query parameter as a number, None where it is not there. Raises BadRequest."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'{name}: "{text}" is not a whole number') from None


def flag(query: Query, name: str) -> bool:
    """Gives a boolean query parameter, as Go reads one."""
    return query.get(name, "") in {"1", "true", "True", "TRUE", "t", "T"}


def patch_type_of(media_type: str) -> AnyPatchType:
    """Gives the patch type that a Content-Type stands for. Raises UnsupportedMediaType."""
    found = _PATCH_TYPES.get(media_type)
    if found is None:
        raise unsupported_media_type(tuple(_PATCH_TYPES))
    return found


def decoded(raw: bytes, media_type: str, what: str) -> Any:
    """Gives the value of a body that is JSON, YAML or protobuf, None for an empty one.

    Raises: UnsupportedMediaType for another type, BadRequest for a text that cannot be read.
    """
    if not raw.strip():
        return None
    if media_type == MEDIA_TYPE:
        return decode_protobuf(raw)
    if media_type.endswith("yaml"):
        return _from_yaml(raw, what)
    if media_type in {"", "application/octet-stream"} or media_type.endswith("json"):
        try:
            return msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {what}): couldn't get version/kind; "
                f"json parse error: {error}"
            ) from error
    raise unsupported_media_type((JSON_TYPE, YAML_TYPE, MEDIA_TYPE))


def checked_body(
    kind: Kind[Any],
    raw: bytes,
    media_type: str,
    query: Query,
    *,
    is_object: bool = True,
    result_of: Callable[[Any], Json] | None = None,
) -> Body:
    """Gives a body after ``fieldValidation``: Strict refuses, Warn (the default) warns, Ignore is silent.

    Args:
        kind: What the body is, or is a patch of.
        raw: The bytes, of ``media_type``.
        query: Says the level.
        is_object: The body has the fields of the kind.
        result_of: Gives what a patch comes to, which then is checked in its place.
    Raises: BadRequest, UnsupportedMediaType, Invalid (of a patch).
    """
    value = decoded(raw, media_type, kind.kind)
    if value is None:
        raise BadRequest(f"the request has no body: send the {kind.kind} as {JSON_TYPE}")
    level = query.get("fieldValidation") or "Warn"
    if level == "Ignore" or not (is_object or result_of):
        return Body(value)
    if level not in {"Warn", "Strict"}:
        raise BadRequest(
            f'fieldValidation: Unsupported value: "{level}": supported values: "Ignore", "Strict", "Warn"'
        )
    in_json = is_object and (media_type.endswith("json") or not media_type)
    twice = [f'duplicate field "{path}"' for path in (duplicate_fields(raw) if in_json else ())]
    checked = value if result_of is None else result_of(value)
    unknown = [f'unknown field "{path}"' for path in unknown_fields(kind, checked)]
    said = [*twice, *unknown] if isinstance(kind, CustomKind) else [*unknown, *twice]
    if said and level == "Strict":
        problem = f"strict decoding error: {', '.join(said)}"
        if result_of is not None:
            raise invalid_patch(checked, problem)
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
        )
    return Body(value, tuple(said))


def _from_yaml(raw: bytes, what: str) -> Any:
    try:
        documents = list(read_documents(raw))
    except YamlError as error:
        raise BadRequest(f"the {what} cannot be read: line {error.line}: {error.detail}") from error
    if len(documents) != 1:
        raise BadRequest(f"the body holds {len(documents)} documents: send one {what}")
    return documents[0].value


def _dry_run(said: str) -> bool:
    if said not in {"", "All"}:
        raise BadRequest(f'dryRun: Unsupported value: "{said}": supported values: "All"')
    return said == "All"
