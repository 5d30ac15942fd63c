"""From an HTTP request to the options and the body of a request to the REST semantics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec
from multidict import MultiMapping

from kubetide.embedded.apiserver.http.refusals import (
    JSON_TYPE,
    YAML_TYPE,
    too_many_operations,
    unknown_patch_type,
    unrecognized,
    unsupported_media_type,
)
from kubetide.embedded.apiserver.http.strict import (
    cannot_unmarshal,
    duplicate_fields,
    findings,
    misfit_in,
    not_an_object,
)
from kubetide.embedded.apiserver.http.syntax import excerpt, fault_in
from kubetide.embedded.apiserver.patches.strategic import go_text
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.errors import invalid_options, invalid_patch, not_registered
from kubetide.embedded.apiserver.store.request import Options
from kubetide.embedded.apiserver.types.protobuf import decode_protobuf
from kubetide.objects.api_types import DELETE_OPTIONS
from kubetide.objects.base import Json
from kubetide.objects.field_errors import (
    FieldError,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kubetide.objects.kinds import Kind
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.ports.cluster import PatchType, Propagation
from kubetide.ports.errors import ApiError, BadRequest, Unclassified

Query = MultiMapping[str]

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body; the limit of kube-apiserver v1.36."""

AnyPatchType = PatchType | Literal["apply"]

_PATCH_TYPES: dict[str, AnyPatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}

_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_LONGEST_MANAGER = 128  # bytes
_MOST_OPERATIONS = 10_000
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, and the warnings that go with the answer."""

    value: Any
    warnings: tuple[str, ...] = ()


def list_options(query: Query, *, name: str = "", watch: bool = False) -> Options:
    """Return the options of a list, watch or deletecollection; ``name`` narrows them to one object.

    Raises: BadRequest, Invalid.
    """
    limit = whole_number(query, "limit") or 0
    faults = _version_faults(query, watch=watch)
    if faults:
        raise invalid_options("ListOptions", faults)
    fields = query.get("fieldSelector", "")
    if name:
        own = f"metadata.name={name}"
        fields = f"{fields},{own}" if fields else own
    return Options(
        labels=query.get("labelSelector", ""),
        fields=fields,
        resource_version=query.get("resourceVersion", ""),
        limit=max(limit, 0),
        continue_token=query.get("continue", ""),
    )


def _version_faults(query: Query, *, watch: bool) -> list[FieldError]:
    """Source: apimachinery v1.36, pkg/apis/meta/internalversion/validation."""
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    initial, at = "sendInitialEvents" in query, "resourceVersionMatch"
    faults = []
    if watch:
        if initial and match != "NotOlderThan":
            faults.append(
                forbidden(at, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
            )
        elif match and not initial:
            faults.append(forbidden(at, f"{at} is forbidden for watch unless sendInitialEvents is provided"))
        if match not in {"", "NotOlderThan"}:
            faults.append(unsupported(at, match, ("NotOlderThan",)))
        return faults
    if initial:
        faults.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if match:
        if not version:
            faults.append(forbidden(at, f"{at} is forbidden unless resourceVersion is provided"))
        if query.get("continue"):
            faults.append(forbidden(at, f"{at} is forbidden when continue is provided"))
        if match not in {"Exact", "NotOlderThan"}:
            faults.append(unsupported(at, match, ("Exact", "NotOlderThan", ""), in_order=True))
        if match == "Exact" and version == "0":
            faults.append(forbidden(at, f'{at} "exact" is forbidden for resourceVersion "0"'))
    return faults


def write_options(query: Query, what: str, agent: str, patch_type: AnyPatchType | None = None) -> Options:
    """Return the options of a create, replace or patch.

    Args:
        query: The parameters of the request.
        what: ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``.
        agent: The User-Agent, whose first word is the field manager of whoever names none.
        patch_type: Of a patch.

    Raises: Invalid.
    """
    said, manager, force = query.getall("dryRun", []), query.get("fieldManager", ""), flag(query, "force")
    level = query.get("fieldValidation", "")
    faults = []
    if force and patch_type != "apply":
        faults.append(forbidden("force", "may not be specified for non-apply patch"))
    if patch_type == "apply" and not manager:
        faults.append(required("fieldManager", "is required for apply patch"))
    faults += _manager_faults(manager)
    if any(one != "All" for one in said):
        faults.append(unsupported("dryRun", said, ("All",)))
    if level not in {"", "Ignore", "Strict", "Warn"}:
        faults.append(unsupported("fieldValidation", level, ("", "Ignore", "Strict", "Warn")))
    if faults:
        raise invalid_options(what, faults)
    return Options(
        patch_type=patch_type or "merge",
        field_manager=manager or _manager_of(agent),
        force=force,
        dry_run=bool(said),
    )


def _manager_faults(manager: str) -> list[FieldError]:
    faults = [too_long("fieldManager", _LONGEST_MANAGER)] if len(manager.encode()) > _LONGEST_MANAGER else []
    at = next((index for index, char in enumerate(manager) if not char.isprintable()), None)
    if at is not None:
        detail = f"invalid character U+{ord(manager[at]):04X} (at position {at})"
        faults.append(invalid("fieldManager", manager, detail))
    return faults


def _manager_of(agent: str) -> str:
    """Return who writes when nobody is named. Source: apiserver v1.36, managerOrUserAgent."""
    first = agent.partition("/")[0]
    return (
        "".join(char for char in first if char.isprintable())
        .encode()[:_LONGEST_MANAGER]
        .decode(errors="ignore")
    )


def delete_options(query: Query, body: Any) -> Options:
    """Return the options of a delete: those of a DeleteOptions body, else those of the query.

    Raises: BadRequest, Invalid.
    """
    said = _delete_body(body)
    grace = said.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = whole_number(query, "gracePeriodSeconds")
    policy = said.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = said.get("orphanDependents")
    asked: Any = said.get("dryRun") or query.getall("dryRun", [])
    dry_run: list[str] = list(asked)
    faults = []
    if policy and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", policy, detail))
    if policy and policy not in _PROPAGATIONS:
        faults.append(unsupported("propagationPolicy", policy, (*_PROPAGATIONS, "nil"), in_order=True))
    if any(one != "All" for one in dry_run):
        faults.append(unsupported("dryRun", dry_run, ("All",)))
    if faults:
        raise invalid_options("DeleteOptions", faults)
    preconditions = said.get("preconditions") or {}
    return Options(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        grace_period_s=grace,
        propagation=cast("Propagation", policy or ("Orphan" if orphan else "Background")),
        dry_run=bool(dry_run),
    )


def _delete_body(body: Any) -> Json:
    """Return the DeleteOptions that were sent, empty for none."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise BadRequest(f"couldn't get version/kind; json parse error: {not_an_object(body)}")
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "v1"
    if kind != "DeleteOptions":
        raise BadRequest(not_registered(kind, version))
    misfit = misfit_in(body, DELETE_OPTIONS)
    if misfit:
        raise BadRequest(misfit)
    return body


def whole_number(query: Query, name: str) -> int | None:
    """Return a query parameter as a 64-bit number, None where it is not there. Raises BadRequest."""
    text = query.get(name, "")
    if not text:
        return None
    if not _WHOLE.fullmatch(text):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def flag(query: Query, name: str) -> bool:
    """Return a boolean query parameter, as Go reads one."""
    return query.get(name, "") in {"1", "true", "True", "TRUE", "t", "T"}


def patch_type_of(media_type: str) -> AnyPatchType:
    """Return the patch type that a Content-Type stands for. Raises UnsupportedMediaType."""
    found = _PATCH_TYPES.get(media_type)
    if found is None:
        raise unknown_patch_type()
    return found


def decoded(raw: bytes, media_type: str, what: str) -> Any:
    """Return the value of a body that is JSON, YAML or protobuf, None for an empty one.

    Raises: UnsupportedMediaType for another type, BadRequest for a text that cannot be read.
    """
    if not raw:
        return None
    if media_type == MEDIA_TYPE:
        return decode_protobuf(raw)
    if media_type.endswith("yaml"):
        return _from_yaml(raw, what)
    if media_type not in {"", "application/octet-stream"} and not media_type.endswith("json"):
        raise unsupported_media_type((JSON_TYPE, YAML_TYPE, MEDIA_TYPE))
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Go reads bytes that are no UTF-8 as U+FFFD.
        plain = raw.decode(errors="replace").encode()
        if plain != raw:
            return decoded(plain, media_type, what)
        why = fault_in(raw) or str(error)
        if what == "DeleteOptions":
            raise BadRequest(f"couldn't get version/kind; json parse error: {why}") from error
        parse = f"couldn't get version/kind; json parse error: {why}"
        raise unrecognized(what, parse, excerpt(raw)) from error


def checked_body(
    kind: Kind[Any],
    raw: bytes,
    media_type: str,
    query: Query,
    *,
    patch_type: AnyPatchType | None = None,
    result_of: Callable[[Any], Json] | None = None,
) -> Body:
    """Return a body after ``fieldValidation``: Strict refuses, Warn (the default) warns, Ignore is silent.

    Args:
        kind: What the body is, or is a patch of.
        raw: The bytes, of ``media_type``.
        query: Says the level.
        patch_type: Of a patch.
        result_of: Returns the result of a patch, which then is checked in its place.

    Raises: BadRequest, Invalid (a patch), UnsupportedMediaType.
    """
    value = decoded(raw, media_type, kind.kind)
    if patch_type is None:
        value = _typed(kind, value, raw)
    elif patch_type == "json":
        if isinstance(value, list) and len(value) > _MOST_OPERATIONS:
            raise too_many_operations(_MOST_OPERATIONS, len(value))
        if result_of is None:
            return Body(value)
    elif not isinstance(value, dict):
        go_type = "map[string]interface {}"
        raise BadRequest(f"error decoding patch: {not_an_object(value, go_type)}")
    if isinstance(value, dict) and _is_other(kind, value):
        return Body(value)  # the semantics refuse it
    looked_at = value if result_of is None else result_of(value)
    found = findings(kind, looked_at)
    if patch_type == "apply":
        if found.unknown and not isinstance(kind, CustomKind):
            raise _undeclared(kind, value, found.unknown)
        return Body(value)
    if found.misfit:
        raise _unreadable(kind, looked_at, found.misfit, patch_type)
    level = query.get("fieldValidation") or "Warn"
    if level == "Ignore":
        return Body(value)
    in_json = patch_type != "json" and (media_type.endswith("json") or not media_type)
    said = [f'duplicate field "{path}"' for path in (duplicate_fields(raw) if in_json else ())]
    said += [f'unknown field "{path}"' for path in found.unknown]
    if said and level == "Strict":
        raise _unreadable(kind, looked_at, f"strict decoding error: {', '.join(said)}", patch_type)
    return Body(value, tuple(said))


def _typed(kind: Kind[Any], value: Any, raw: bytes) -> Any:
    """Return a whole object, of which it is known that its type can be read."""
    parse = "couldn't get version/kind; json parse error: "
    if value is None:
        if raw.strip() == b"null":
            return {}
        raise unrecognized(kind.kind, parse + fault_in(raw), excerpt(raw))
    if not isinstance(value, dict):
        raise unrecognized(kind.kind, parse + not_an_object(value), excerpt(raw))
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name) or "", str):
            why = cannot_unmarshal(value[name], "string", "", name)
            raise unrecognized(kind.kind, parse + why, excerpt(raw))
    version = value.get("apiVersion") or ""
    if version.count("/") > 1:
        raise unrecognized(kind.kind, f"unexpected GroupVersion string: {version}", excerpt(raw))
    if isinstance(kind, CustomKind) and not value.get("kind"):
        text = raw.decode(errors="replace")
        raise unrecognized(kind.kind, f"Object 'Kind' is missing in '{text}'", excerpt(raw))
    return value


def _is_other(kind: Kind[Any], value: Json) -> bool:
    """Return whether a body says that it is of another type."""
    return (value.get("kind") or kind.kind, value.get("apiVersion") or kind.api_version) != (
        kind.kind,
        kind.api_version,
    )


def _undeclared(kind: Kind[Any], value: Json, paths: list[str]) -> ApiError:
    """Return the error of an apply with fields that its type does not have, whatever ``fieldValidation`` says."""
    meta = value.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    group, _, version = kind.api_version.rpartition("/")
    what = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {group}/{version}, Kind={kind.kind}"
    faults = [f".{path}: field not declared in schema" for path in paths]
    said = faults[0] if len(faults) == 1 else "errors:\n  " + "\n  ".join(faults)
    return Unclassified(f"failed to create typed patch object ({what}): {said}")


def _unreadable(kind: Kind[Any], value: Json, why: str, patch_type: AnyPatchType | None) -> ApiError:
    if patch_type is not None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        shown = go_text(value) if patch_type == "strategic" else text
        return invalid_patch(shown, why)
    return BadRequest(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def _from_yaml(raw: bytes, what: str) -> Any:
    try:
        documents = list(read_documents(raw))
    except YamlError as error:
        raise BadRequest(f"the {what} cannot be read: line {error.line}: {error.detail}") from error
    if len(documents) != 1:
        raise BadRequest(f"the body holds {len(documents)} documents: send one {what}")
    return documents[0].value
