"""What the API server fills in of volumes, claims and storage classes.

Source: Kubernetes v1.36, pkg/apis/core/v1/defaults.go and pkg/apis/storage/v1/defaults.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_VOLUME: Json = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}
_CLAIM: Json = {"volumeMode": "Filesystem"}
_CLASS: Json = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_DRIVER: Json = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
_PENDING: Json = {"phase": "Pending"}


def volume_defaults(obj: Json) -> Json:
    return {**obj, "spec": _filled(obj.get("spec"), _VOLUME), "status": _filled(obj.get("status"), _PENDING)}


def claim_defaults(obj: Json) -> Json:
    """Also of the claims in a StatefulSet, which are whole objects there."""
    return {**obj, "spec": _filled(obj.get("spec"), _CLAIM), "status": _filled(obj.get("status"), _PENDING)}


def class_defaults(obj: Json) -> Json:
    return _filled(obj, _CLASS)


def driver_defaults(obj: Json) -> Json:
    spec = _filled(obj.get("spec"), _DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec = {**spec, "volumeLifecycleModes": ["Persistent"]}
    return {**obj, "spec": spec}


def _filled(obj: Json | None, values: Json) -> Json:
    missing = {name: value for name, value in values.items() if (obj or {}).get(name) is None}
    return {**(obj or {}), **missing}
