"""What admission does to volumes and claims: a finalizer while they are in use, and the default class.

Source: Kubernetes v1.36, the admission plugins StorageObjectInUseProtection and DefaultStorageClass.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import CLAIMS, STORAGE_CLASSES, Kind

VOLUME_PROTECTION = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
}
"""The finalizer of each resource; the controller of volumes takes it off."""

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def with_volume_rules(store: Store, kind: Kind[Any], json: Json) -> Json:
    """Return a new volume or claim as it is admitted."""
    meta = json["metadata"]
    finalizers = meta.get("finalizers") or []
    guard = VOLUME_PROTECTION[kind.resource]
    if guard not in finalizers:
        json = {**json, "metadata": {**meta, "finalizers": [*finalizers, guard]}}
    spec = json.get("spec") or {}
    if kind is not CLAIMS or _BETA_CLASS in (meta.get("annotations") or {}):
        return json
    if spec.get("storageClassName") is None:
        name = _default_class(store)
        if name is not None:
            return {**json, "spec": {**spec, "storageClassName": name}}
    return json


def _default_class(store: Store) -> str | None:
    """Return the default class: of several the one created last, of those the first by name."""
    found = [
        (revision.metadata["creationTimestamp"], revision.metadata["name"])
        for revision in store.select(STORAGE_CLASSES, Selection(STORAGE_CLASSES))
        if any((revision.metadata.get("annotations") or {}).get(key) == "true" for key in _DEFAULT)
    ]
    if not found:
        return None
    newest = max(created for created, _ in found)
    return str(min(name for created, name in found if created == newest))
