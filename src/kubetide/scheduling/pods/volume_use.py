"""Volumes that a pod uses: claims by name, and disks that only one node may use."""

from __future__ import annotations

import msgspec

from kubetide.objects.pod import Pod


class ClaimUse(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim that a pod uses.

    Attributes:
        owner: (UID, name) of the pod when the claim is to be made for it (ephemeral volume), else empty.
    """

    namespace: str
    name: str
    owner: tuple[str, ...] = ()


DiskPlace = tuple[str, tuple[str, ...]]
"""Kind and name of a disk."""


class Disk(msgspec.Struct, frozen=True):
    """A disk named in the pod itself.

    Attributes:
        kind: ``gce``, ``aws``, ``iscsi`` or ``rbd``.
        name: Its identity: disk, volume id, IQN, or pool and image.
        monitors: Of RBD: two uses are of the same image when they share one.
        shareable: Whether two such uses may be on one node (both read-only).
    """

    kind: str
    name: tuple[str, ...]
    monitors: tuple[str, ...] = ()
    shareable: bool = False

    @property
    def place(self) -> DiskPlace:
        """A key that disks share if they may exclude each other."""
        return self.kind, self.name

    def excludes(self, other: Disk) -> bool:
        """Return whether the two cannot be on one node. Source: kube-scheduler v1.36 VolumeRestrictions."""
        if self.place != other.place or (self.shareable and other.shareable):
            return False
        return self.kind != "rbd" or any(one in other.monitors for one in self.monitors)


def claims_of(pod: Pod) -> tuple[ClaimUse, ...]:
    """Return the claims in the order of the volumes."""
    found: list[ClaimUse] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(ClaimUse(pod.metadata.namespace, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            name = f"{pod.metadata.name}-{volume.name}"
            found.append(ClaimUse(pod.metadata.namespace, name, (pod.metadata.uid, pod.metadata.name)))
    return tuple(found)


def disks_of(pod: Pod) -> tuple[Disk, ...]:
    """Return the disks in the order of the volumes."""
    found: list[Disk] = []
    for volume in pod.spec.volumes or ():
        if volume.gce_persistent_disk is not None:
            gce = volume.gce_persistent_disk
            found.append(Disk("gce", (gce.pd_name,), shareable=gce.read_only))
        if volume.aws_elastic_block_store is not None:
            found.append(Disk("aws", (volume.aws_elastic_block_store.volume_id,)))
        if volume.iscsi is not None:
            found.append(Disk("iscsi", (volume.iscsi.iqn,), shareable=volume.iscsi.read_only))
        if volume.rbd is not None:
            rbd = volume.rbd
            found.append(
                Disk("rbd", (rbd.pool, rbd.image), tuple(rbd.monitors or ()), shareable=rbd.read_only)
            )
    return tuple(found)
