"""Volumes, claims, storage classes and what CSI drivers report."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.tables.column import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Columns,
    age,
    at,
    whole,
    wide,
)
from kubetide.objects.base import Json
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Instant

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _volume(obj: Json, now: Instant) -> list[Any]:
    spec = obj.get("spec") or {}
    ref = spec.get("claimRef")
    return [
        obj["metadata"]["name"],
        _size(at(spec, "capacity", "storage")),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(obj),
        "" if ref is None else f"{ref.get('namespace') or ''}/{ref.get('name') or ''}",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        at(obj, "status", "reason") or "",
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(obj: Json, now: Instant) -> list[Any]:
    spec, bound = obj.get("spec") or {}, bool(at(obj, "spec", "volumeName"))
    return [
        obj["metadata"]["name"],
        _phase(obj),
        spec.get("volumeName") or "",
        _size(at(obj, "status", "capacity", "storage")) if bound else "",
        _modes(at(obj, "status", "accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(obj: Json, now: Instant) -> list[Any]:
    notes = at(obj, "metadata", "annotations") or {}
    is_default = any(notes.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        obj["metadata"]["name"] + (" (default)" if is_default else ""),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _csi_node(obj: Json, now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], len(at(obj, "spec", "drivers") or ()), age(obj, now)]


def _csi_driver(obj: Json, now: Instant) -> list[Any]:
    spec = obj.get("spec") or {}
    asked = spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if asked is None else ",".join(one.get("audience") or "" for one in asked),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def _capacity(obj: Json, _now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], at(obj, "metadata", "creationTimestamp") or ""]


def _attachment(obj: Json, now: Instant) -> list[Any]:
    return [
        obj["metadata"]["name"],
        at(obj, "spec", "attacher") or "",
        at(obj, "spec", "source", "persistentVolumeName") or "",
        at(obj, "spec", "nodeName") or "",
        bool(at(obj, "status", "attached")),
        age(obj, now),
    ]


def _phase(obj: Json) -> str:
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return at(obj, "status", "phase") or ""


def _class(obj: Json) -> str:
    beta = (at(obj, "metadata", "annotations") or {}).get(_BETA_CLASS)
    return beta if beta is not None else at(obj, "spec", "storageClassName") or ""


def _modes(modes: list[str] | None) -> str:
    """Return access modes in upstream's order, each once."""
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _size(value: Any) -> str:
    try:
        return str(Quantity.parse(0 if value is None else value))
    except QuantityError:
        return str(value)


def _truth(name: str) -> Column:
    return Column(name, "boolean")


STORAGE_TABLES = {
    "persistentvolumes": Columns(
        (
            NAME,
            Column("Capacity"),
            Column("Access Modes"),
            Column("Reclaim Policy"),
            Column("Status"),
            Column("Claim"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            Column("Reason"),
            AGE,
            wide("VolumeMode"),
        ),
        _volume,
    ),
    "persistentvolumeclaims": Columns(
        (
            NAME,
            Column("Status"),
            Column("Volume"),
            Column("Capacity"),
            Column("Access Modes"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            AGE,
            wide("VolumeMode"),
        ),
        _claim,
    ),
    "storageclasses.storage.k8s.io": Columns(
        (
            NAME,
            Column("Provisioner"),
            Column("ReclaimPolicy"),
            Column("VolumeBindingMode"),
            Column("AllowVolumeExpansion"),
            AGE,
        ),
        _storage_class,
    ),
    "csinodes.storage.k8s.io": Columns((NAME, whole("Drivers"), AGE), _csi_node),
    "csidrivers.storage.k8s.io": Columns(
        (
            NAME,
            _truth("AttachRequired"),
            _truth("PodInfoOnMount"),
            _truth("StorageCapacity"),
            Column("TokenRequests"),
            _truth("RequiresRepublish"),
            Column("Modes"),
            AGE,
        ),
        _csi_driver,
    ),
    "csistoragecapacities.storage.k8s.io": Columns(
        # Upstream has a printer with more columns, which its server does not use for this kind.
        (NAME, Column("Created At", "date")),
        _capacity,
    ),
    "volumeattachments.storage.k8s.io": Columns(
        (
            NAME,
            Column("Attacher", format="name"),
            Column("PV"),
            Column("Node"),
            _truth("Attached"),
            AGE,
        ),
        _attachment,
    ),
}
