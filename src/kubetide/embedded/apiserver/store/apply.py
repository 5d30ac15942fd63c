"""Server-side apply: who manages which fields, and what an applied configuration does.

Fields are tracked from the first write that names its manager, or the first apply; a cluster in
which nobody does either pays nothing. What was there before the first apply belongs to the manager
``before-first-apply``. Fields are those of the stored version, whatever version was written.

Source: apimachinery v1.36, util/managedfields; structured-merge-diff v6, merge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubetide.embedded.apiserver.patches.merging import Shape
from kubetide.embedded.apiserver.store.errors import apply_conflict
from kubetide.embedded.apiserver.store.fields import (
    NOTHING,
    Comparison,
    FieldsError,
    Path,
    Paths,
    from_fields_v1,
    merge,
    only,
    remove,
    text_of,
    to_fields_v1,
    values_in,
    without,
)
from kubetide.objects.base import Json
from kubetide.ports.errors import InternalError

Manage = Callable[[Json], Json]
"""Return an object that is about to be written with its ``managedFields``."""

_STATUS: Path = ("f:status",)
_META = ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation")
_NEVER_OWNED: tuple[Path, ...] = (
    ("f:apiVersion",),
    ("f:kind",),
    *(("f:metadata", f"f:{name}") for name in (*_META, "managedFields", "resourceVersion")),
)


class Manager(msgspec.Struct, frozen=True, order=True):
    """Who writes, and how: two of a name that write differently are two managers."""

    operation: str  # Apply sorts before Update, as in the list of entries
    name: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    @property
    def identity(self) -> Manager:
        """The identity of a manager: one that applies is the same in every version."""
        return replace(self, api_version="") if self.operation == "Apply" else self


class _Owned(msgspec.Struct, frozen=True):
    manager: Manager
    fields: Paths
    time: str


_Owners = dict[Manager, _Owned]


class Applied(msgspec.Struct, frozen=True):
    """What an apply makes of an object, before defaults, and how its owners are then written."""

    json: Json
    manage: Manage


def is_tracked(json: Json) -> bool:
    """Return whether the managers of an object's fields are written down."""
    return bool(json["metadata"].get("managedFields"))


def updated(before: Json | None, manager: Manager, shape: Shape, now: str, *, has_status: bool) -> Manage:
    """Return what notes an ordinary write, a creation where there was nothing before."""

    def manage(new: Json) -> Json:
        sent = new["metadata"].get("managedFields")
        if before is not None and sent == [{}]:
            return _with_entries(new, [])  # how a client forgets them all
        owners = _read(sent) or (_read(before["metadata"].get("managedFields")) if before else {})
        try:
            comparison = _compare(before or {}, new, shape, manager.subresource, has_status=has_status)
        except FieldsError:
            # Nothing can be said about such an object; upstream keeps what was known, too.
            return new if before is None else _with_entries(new, before["metadata"].get("managedFields"))
        for other, owned in list(owners.items()):
            if other != manager.identity:
                _keep(owners, owned, owned.fields - comparison.removed - comparison.written)
        own = owners.get(manager.identity, _Owned(manager, NOTHING, now))
        fields = (own.fields - comparison.removed) | comparison.written
        # As upstream: the time is that of the last write that took a field; one that only removes takes none.
        _keep(owners, _Owned(manager, fields, now if comparison.written else own.time), fields)
        return _with_entries(new, _written(owners))

    return manage


def applied(
    live: Json | None,
    config: Json,
    manager: Manager,
    shape: Shape,
    now: str,
    *,
    has_status: bool,
    force: bool,
) -> Applied:
    """Apply a configuration, without nulls, to a live object or to nothing.

    Raises: Conflict when another manager owns a field that would change, InternalError for lists
    whose items have no keys.
    """
    part = manager.subresource
    try:
        config_fields = _ownable(frozenset(values_in(config, shape)), part, has_status=has_status)
        if live is None:
            return Applied(config, _fixed(None, {}, _Owned(manager, config_fields, now)))
        owners = _read(live["metadata"].get("managedFields"))
        if not owners:
            fields = _ownable(frozenset(values_in(live, shape)), "", has_status=False)
            first = Manager("Update", "before-first-apply", manager.api_version)
            owners = {first: _Owned(first, fields, now)}
        last = owners.get(manager.identity, _Owned(manager, NOTHING, now))
        still_owned = frozenset(
            path[:depth]
            for fields in (
                config_fields,
                *(o.fields for other, o in owners.items() if other != manager.identity),
            )
            for path in fields
            for depth in range(1, len(path) + 1)
        )
        new: Json = merge(live, _relevant(config, part, has_status=has_status), shape)
        new = remove(new, last.fields - still_owned, shape)
        comparison = _compare(live, new, shape, part, has_status=has_status)
    except FieldsError as error:
        raise InternalError(f"failed to create typed patch object: errors:\n  {error}") from error
    conflicts: list[tuple[str, str]] = []
    for other in sorted(owners):
        if other == manager.identity:
            continue
        owned = owners[other]
        lost = owned.fields & comparison.written
        conflicts += [(str(owned.manager), text_of(path)) for path in sorted(lost)]
        _keep(owners, owned, owned.fields - lost - comparison.removed)
    if conflicts and not force:
        raise apply_conflict(conflicts)
    owners.pop(manager.identity, None)
    own = _Owned(manager, config_fields, last.time if config_fields == last.fields else now)
    return Applied(new, _fixed(live, owners, own, now))


def _fixed(live: Json | None, owners: _Owners, own: _Owned, now: str = "") -> Manage:
    """Return what writes down the owners that an apply has led to."""

    def manage(new: Json) -> Json:
        current = own
        if live is not None and not _same_but_fields(live, new):
            current = replace(own, time=now)
        written = {**owners, own.manager.identity: current} if own.fields else owners
        return _with_entries(new, _written(written))

    return manage


def _same_but_fields(a: Json, b: Json) -> bool:
    return _with_entries(a, []) == _with_entries(b, [])


def _relevant(config: Json, subresource: str, *, has_status: bool) -> Json:
    """Return what of a configuration the address that it was sent to can change."""
    if subresource == "status":
        return {key: value for key, value in config.items() if key in {"status", "metadata"}}
    if has_status:
        return {key: value for key, value in config.items() if key != "status"}
    return config


def _ownable(paths: Paths, subresource: str, *, has_status: bool) -> Paths:
    paths = without(paths, _NEVER_OWNED)
    if subresource == "status":
        return only(paths, _STATUS)
    return without(paths, (_STATUS,)) if has_status else paths


def _compare(old: Json, new: Json, shape: Shape, subresource: str, *, has_status: bool) -> Comparison:
    result = Comparison(values_in(old, shape), values_in(new, shape))
    result.added = _ownable(result.added, subresource, has_status=has_status)
    result.modified = _ownable(result.modified, subresource, has_status=has_status)
    return result


def _keep(owners: _Owners, owned: _Owned, fields: Paths) -> None:
    """Note what a manager owns now; one that owns nothing is forgotten."""
    if fields:
        owners[owned.manager.identity] = replace(owned, fields=fields)
    else:
        owners.pop(owned.manager.identity, None)


def _read(entries: Any) -> _Owners:
    """Read ``managedFields``; entries that cannot be read are left out."""
    owners: _Owners = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("operation") not in {"Apply", "Update"}:
            continue
        manager = Manager(
            entry["operation"],
            str(entry.get("manager") or ""),
            str(entry.get("apiVersion") or ""),
            str(entry.get("subresource") or ""),
        )
        fields = from_fields_v1(entry.get("fieldsV1"))
        owners[manager.identity] = _Owned(manager, fields, str(entry.get("time") or ""))
    return owners


def _written(owners: _Owners) -> list[Json]:
    """Write ``managedFields`` down, in upstream's order."""
    entries = []
    for owned in sorted(
        owners.values(), key=lambda owned: (owned.manager.operation, owned.time, owned.manager)
    ):
        manager = owned.manager
        entry: Json = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
        }
        if owned.time:
            entry["time"] = owned.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(owned.fields)}
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def _with_entries(json: Json, entries: Any) -> Json:
    meta = {key: value for key, value in json["metadata"].items() if key != "managedFields"}
    if entries:
        meta["managedFields"] = entries
    return {**json, "metadata": meta}
