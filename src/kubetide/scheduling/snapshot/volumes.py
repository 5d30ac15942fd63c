"""Volume objects as filters look them up.

Source: kube-scheduler v1.36 VolumeBinding, VolumeZone, NodeVolumeLimits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

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
from kubetide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubetide.scheduling.pods.volume_use import ClaimUse
from kubetide.scheduling.snapshot.objects import HeldObjects

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ModeUnknown(Exception):  # upstream's error of the plugin; a caller turns it into a refusal
    """A storage class has no volume binding mode."""


class Volumes(msgspec.Struct, frozen=True, kw_only=True):
    """All volume objects of a cluster, by name (claims by namespace and name)."""

    persistent_volumes: Mapping[str, PersistentVolume] = {}
    claims: Mapping[tuple[str, str], PersistentVolumeClaim] = {}
    storage_classes: Mapping[str, StorageClass] = {}
    csi_nodes: Mapping[str, CSINode] = {}
    csi_drivers: Mapping[str, CSIDriver] = {}
    capacities: tuple[CSIStorageCapacity, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()

    def claim(self, use: ClaimUse) -> PersistentVolumeClaim | None:
        """Return the claim that a pod uses, or None if it does not exist."""
        return self.claims.get((use.namespace, use.name))

    def class_of(self, claim: PersistentVolumeClaim) -> str:
        """Return the name of the claim's storage class; empty without one."""
        beta = (claim.metadata.annotations or {}).get(_BETA_CLASS)
        return beta if beta is not None else claim.spec.storage_class_name or ""

    def waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the claim is bound only once a pod has a node; False if its class does not exist.

        Raises: ModeUnknown with upstream's message.
        """
        found = self.storage_classes.get(self.class_of(claim))
        if found is None:
            return False
        if found.volume_binding_mode is None:
            raise ModeUnknown(f'VolumeBindingMode not set for StorageClass "{found.metadata.name}"')
        return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


class VolumeObjects(HeldObjects):
    """The volume objects of a cluster, updated from it; ``volumes`` is their form for a snapshot."""

    def __init__(self) -> None:
        super().__init__(VOLUME_KINDS)

    def volumes(self) -> Volumes:
        """Return their present state; later changes do not show in it. Orders do not depend on arrival."""
        return Volumes(
            persistent_volumes=self._of(PERSISTENT_VOLUMES, _by_name),
            claims=self._of(CLAIMS, dict),
            storage_classes=self._of(STORAGE_CLASSES, _by_name),
            csi_nodes=self._of(CSI_NODES, _by_name),
            csi_drivers=self._of(CSI_DRIVERS, _by_name),
            capacities=self._of(CSI_CAPACITIES, _values),
            attachments=self._of(VOLUME_ATTACHMENTS, _values),
        )

    def _of(self, kind: Kind[Any], form: Callable[[Iterable[tuple[tuple[str, str], Any]]], Any]) -> Any:
        if kind.plural not in self._made:
            self._made[kind.plural] = form(sorted(self[kind].items(), key=_key))
        return self._made[kind.plural]


def _key(item: tuple[tuple[str, str], Any]) -> tuple[str, str]:
    return item[0]


def _by_name(items: Iterable[tuple[tuple[str, str], Any]]) -> dict[str, Any]:
    return {name: one for (_, name), one in items}


def _values(items: Iterable[tuple[tuple[str, str], Any]]) -> tuple[Any, ...]:
    return tuple(one for _, one in items)


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim is fully bound to its volume."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def is_made_for(claim: PersistentVolumeClaim, use: ClaimUse) -> bool:
    """Return whether the claim of an ephemeral volume belongs to the pod that uses it."""
    return any(
        owner.controller and owner.uid == use.owner[0] for owner in claim.metadata.owner_references or ()
    )
