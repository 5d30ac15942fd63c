"""Claims, volumes, storage classes and CSI objects, reduced to the fields that filters read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from kubetide.nodes.facts.objects import Changes, KnownObjects
from kubetide.objects.kinds import (
    CLAIMS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_KINDS,
    Kind,
)
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    StorageClass,
    VolumeAttachment,
)
from kubetide.scheduling import VolumeObjects, Volumes

KIND_OF: Final[dict[str, Kind[Any]]] = {kind.plural: kind for kind in VOLUME_KINDS}

_NEEDED_TO_JUDGE: Final = frozenset(kind.plural for kind in (CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES))
"""Without one of these nothing can be said of a claim, and pods are placed as if they had none."""

_READ_ANNOTATIONS = (
    "pv.kubernetes.io/bind-completed",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class",
)


class VolumeChanges(Changes, frozen=True, kw_only=True, omit_defaults=True):
    """New or changed volume objects, see ``Changes``."""

    kinds: ClassVar[Mapping[str, Kind[Any]]] = {
        "persistent_volumes": PERSISTENT_VOLUMES,
        "claims": CLAIMS,
        "storage_classes": STORAGE_CLASSES,
        "csi_nodes": CSI_NODES,
        "csi_drivers": CSI_DRIVERS,
        "capacities": CSI_CAPACITIES,
        "attachments": VOLUME_ATTACHMENTS,
    }

    persistent_volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    capacities: tuple[CSIStorageCapacity, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()


class KnownVolumes(KnownObjects[VolumeObjects]):
    """The volume objects that the loop knows."""

    def __init__(self) -> None:
        super().__init__(VolumeObjects(), KIND_OF)

    def for_filters(self) -> Volumes | None:
        """Return what filters read, None if claims cannot be evaluated."""
        return None if _NEEDED_TO_JUDGE & {*self.unread} else self._objects.volumes()

    def export(self) -> VolumeChanges | None:
        """Return all objects, None if they were never read."""
        found = self.in_order()
        return None if found is None else VolumeChanges.from_kinds(found)


def slim(kind: Kind[Any], item: Any) -> Any:
    """Return a volume object with only what is read of it."""
    return _SLIM.get(kind.plural, _named)(item)


def _named(item: Any) -> Any:
    meta = item.metadata
    return replace(item, metadata=ObjectMeta(name=meta.name, namespace=meta.namespace))


def _slim_volume(item: PersistentVolume) -> PersistentVolume:
    meta = item.metadata
    slim = ObjectMeta(name=meta.name, labels=meta.labels, deletion_timestamp=meta.deletion_timestamp)
    return replace(item, metadata=slim)


def _slim_claim(item: PersistentVolumeClaim) -> PersistentVolumeClaim:
    meta = item.metadata
    notes = {key: value for key, value in (meta.annotations or {}).items() if key in _READ_ANNOTATIONS}
    slim = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        annotations=notes or None,
        owner_references=meta.owner_references,
        deletion_timestamp=meta.deletion_timestamp,
    )
    return replace(item, metadata=slim, status=PersistentVolumeClaimStatus(phase=item.status.phase))


_SLIM: Final[dict[str, Callable[[Any], Any]]] = {
    PERSISTENT_VOLUMES.plural: _slim_volume,
    CLAIMS.plural: _slim_claim,
}
