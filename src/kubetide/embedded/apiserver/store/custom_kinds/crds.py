"""CustomResourceDefinitions: which are refused, and how those that are not become served kinds.

What takes the controllers of a real cluster a moment is done when the request returns: names are
accepted, the kind is served, and a definition that is deleted takes its objects with it. Not
supported are conversion webhooks; versions differ in their schemas only, and an object keeps what
both the version it was written in and the stored one know.

Source: apiextensions-apiserver v1.36, validation, and the controllers establish and finalizer.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.store.conversion import Version
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind, kind_of
from kubetide.embedded.apiserver.store.deletion import is_deleting
from kubetide.embedded.apiserver.store.errors import invalid as refused
from kubetide.embedded.apiserver.store.request import Options
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.embedded.apiserver.store.writes import Writer
from kubetide.objects.base import Json
from kubetide.objects.definition import CustomResourceDefinition
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, Kind
from kubetide.ports.errors import MethodNotAllowed

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class CustomKinds:
    """Keeps what the store holds and what is served in step with the definitions."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._kinds: dict[str, list[CustomKind]] = {}
        self._settled: dict[str, int] = {}
        store.serve(CUSTOM_RESOURCE_DEFINITIONS)

    @property
    def versions(self) -> list[Version]:
        """What is served beside the stored versions."""
        return [
            Version(kind, to_stored=_to_stored(kind), from_stored=_from_stored(kind))
            for kinds in self._kinds.values()
            for kind in kinds[1:]
            if kind.served
        ]

    def concerns(self, kind: Kind[Any]) -> bool:
        """Return whether a write to the kind may change what is served."""
        return kind is CUSTOM_RESOURCE_DEFINITIONS or isinstance(kind, CustomKind)

    def check_create(self, kind: CustomKind) -> None:
        """Raise MethodNotAllowed while the kind's definition is being deleted."""
        definition = self._store.get(CUSTOM_RESOURCE_DEFINITIONS, ("", kind.resource))
        if definition is not None and is_deleting(definition.json):
            raise MethodNotAllowed("create not allowed while custom resource definition is terminating")

    def settle(self, now: str) -> None:
        """Serve what has been defined, and clears away what is being deleted."""
        found = self._store.select(CUSTOM_RESOURCE_DEFINITIONS, Selection(CUSTOM_RESOURCE_DEFINITIONS))
        for revision in found:
            # Only of a definition that goes can more be left to do than when it was written.
            if self._settled.get(revision.key[1]) != revision.version or is_deleting(revision.json):
                self._settle_one(revision, now)
        there = {revision.key[1] for revision in found}
        for name in [name for name in self._kinds if name not in there]:
            self._forget(name)

    def _settle_one(self, revision: Revision, now: str) -> None:
        definition = revision.read_as(CustomResourceDefinition)
        name = revision.key[1]
        kinds = [kind_of(definition, version) for version in definition.spec.versions or ()]
        stored_names = [version.name for version in definition.spec.versions or () if version.storage]
        kinds.sort(key=lambda kind: kind.version not in stored_names)  # the stored version first
        self._kinds[name] = kinds
        self._store.serve(kinds[0])
        if is_deleting(revision.json):
            self._clear(revision, kinds[0])
            return
        status = _status(definition, stored_names[0], now)
        body = {**revision.json, "status": status}
        meta = body["metadata"]
        if FINALIZER not in (meta.get("finalizers") or ()):
            body["metadata"] = {**meta, "finalizers": [*(meta.get("finalizers") or ()), FINALIZER]}
        if body != revision.json:
            revision = self._writer.put(CUSTOM_RESOURCE_DEFINITIONS, revision.key, body)
        self._settled[name] = revision.version

    def _clear(self, revision: Revision, kind: CustomKind) -> None:
        """Delete the objects of a definition that is being deleted; when none is left, it may go."""
        for one in self._store.select(kind, Selection(kind)):
            if self._store.get(kind, one.key) is not None and not is_deleting(one.json):
                self._writer.delete(kind, one.key, Options())
        if self._store.select(kind, Selection(kind)):
            return
        meta = dict(revision.metadata)
        meta["finalizers"] = [name for name in meta.get("finalizers") or () if name != FINALIZER]
        self._writer.update(CUSTOM_RESOURCE_DEFINITIONS, revision, {**revision.json, "metadata": meta})
        if self._store.get(CUSTOM_RESOURCE_DEFINITIONS, revision.key) is None:
            self._forget(revision.key[1])

    def _forget(self, name: str) -> None:
        self._settled.pop(name, None)
        kinds = self._kinds.pop(name, None)
        if kinds:
            self._store.withdraw(kinds[0])


def _status(definition: CustomResourceDefinition, stored: str, now: str) -> Json:
    names = definition.spec.names
    accepted: Json = {
        "plural": names.plural,
        "singular": names.singular,
        "kind": names.kind,
        "listKind": names.list_kind,
    }
    if names.short_names:
        accepted["shortNames"] = list(names.short_names)
    if names.categories:
        accepted["categories"] = list(names.categories)
    since = {one.type: one.last_transition_time for one in definition.status.conditions or ()}
    conditions = [
        {
            "type": name,
            "status": "True",
            "lastTransitionTime": since.get(name) or now,
            "reason": reason,
            "message": message,
        }
        for name, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    versions = list(definition.status.stored_versions or ())
    if stored not in versions:
        versions.append(stored)
    return {"conditions": conditions, "acceptedNames": accepted, "storedVersions": versions}


def _to_stored(kind: CustomKind) -> Any:
    def convert(body: Json) -> Json:
        body = kind.admitted(body)
        faults = kind.faults(body)
        if faults:
            raise refused(kind, (body.get("metadata") or {}).get("name") or "", faults)
        return {**body, "apiVersion": ""}  # the stored version says its own

    return convert


def _from_stored(kind: CustomKind) -> Any:
    return lambda body: {**kind.admitted(body), "apiVersion": kind.api_version}
