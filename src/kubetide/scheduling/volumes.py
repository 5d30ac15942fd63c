"""The objects of volumes as the filters look them up.

Source: kube-scheduler v1.36 VolumeBinding, VolumeZone, NodeVolumeLimits.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubetide.scheduling.volume_use import ClaimUse

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
IMMEDIATE = "Immediate"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ModeUnknown(Exception):  # upstream's error of the plugin; a caller turns it into a refusal
    """A storage class does not say when its claims are bound."""


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
        """Gives the claim that a pod uses, or None when there is none."""
        return self.claims.get((use.namespace, use.name))

    def class_of(self, claim: PersistentVolumeClaim) -> str:
        """Gives the name of the claim's storage class; empty without one."""
        beta = (claim.metadata.annotations or {}).get(_BETA_CLASS)
        return beta if beta is not None else claim.spec.storage_class_name or ""

    def waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim is bound only once a pod has a node; False without a class that exists.

        Raises: ModeUnknown with upstream's message.
        """
        found = self.storage_classes.get(self.class_of(claim))
        if found is None:
            return False
        if found.volume_binding_mode is None:
            raise ModeUnknown(f'VolumeBindingMode not set for StorageClass "{found.metadata.name}"')
        return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume for good."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def is_made_for(claim: PersistentVolumeClaim, use: ClaimUse) -> bool:
    """Whether the claim of an ephemeral volume belongs to the pod that uses it."""
    return any(
        owner.controller and owner.uid == use.owner[0] for owner in claim.metadata.owner_references or ()
    )
