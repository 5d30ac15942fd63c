"""VolumeRestrictions: disks that only one node or one pod may use."""

from __future__ import annotations

import msgspec
import numpy as np

from kubetide.scheduling.columns.counting import CountColumn
from kubetide.scheduling.columns.pod_index import Choice
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.volume_use import ClaimUse, Disk
from kubetide.scheduling.refusal import UNSCHEDULABLE, Refusal
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.units.vectors import BoolVector

DISK_CONFLICT = "node(s) had no available disk"
ONE_POD_CONFLICT = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"


class PodsWithDisk(msgspec.Struct, frozen=True):
    """The pods whose use of a disk excludes this use."""

    disk: Disk

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted."""
        return any(self.disk.excludes(other) for other in pod.disks_at.get(self.disk.place, ()))

    def choices(self) -> tuple[Choice, ...]:
        """The disk, in any use."""
        return ((self.disk.place,),)


class PodsWithClaim(msgspec.Struct, frozen=True):
    """The pods that use a claim; claims of ephemeral volumes are ignored."""

    claim: ClaimUse

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted."""
        return self.claim in pod.claims

    def choices(self) -> tuple[Choice, ...]:
        """The claim."""
        return ((self.claim,),)


class _Judge:
    only_tightens = True
    terms = None

    def __init__(self, disks: list[CountColumn], claims: list[CountColumn], n: int) -> None:
        self._disks = disks
        self._claims = claims
        self._n = n

    def in_use(self) -> bool:
        """Return whether a pod anywhere has a claim that only one pod may have."""
        return any(column.vector(self._n).any() for column in self._claims)

    def disk_taken(self, row: int) -> bool:
        return any(column.at(row) for column in self._disks)

    def disks_taken(self) -> BoolVector:
        taken = np.zeros(self._n, np.bool_)
        for column in self._disks:
            taken |= column.vector(self._n) > 0
        return taken

    def nodes(self) -> BoolVector:
        return np.zeros(self._n, np.bool_) if self.in_use() else ~self.disks_taken()

    def node(self, row: int) -> bool:
        return not self.disk_taken(row) and not self.in_use()


class VolumeRestrictions:
    """Source: kube-scheduler v1.36 VolumeRestrictions."""

    name = "VolumeRestrictions"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:
        volumes = rows.facts.volumes
        for use in pod.claims if volumes is not None else ():
            if volumes is not None and not use.owner and volumes.claim(use) is None:
                reason = f'persistentvolumeclaim "{use.name}" not found'
                return Refusal(plugin=self.name, reasons=(reason,), phase="PreFilter", detail=reason)
        return None

    def judge(self, pod: PodClass, rows: Rows) -> _Judge | None:
        volumes = rows.facts.volumes
        single: list[ClaimUse] = []
        for use in pod.claims if volumes is not None else ():
            claim = None if volumes is None or use.owner else volumes.claim(use)
            if claim is not None and "ReadWriteOncePod" in (claim.spec.access_modes or ()):
                single.append(use)
        if not single and not pod.disks:
            return None
        return _Judge(
            [rows.count_column(PodsWithDisk(disk)) for disk in pod.disks],
            [rows.count_column(PodsWithClaim(use)) for use in single],
            rows.n,
        )

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        judge = self.judge(pod, rows)
        if judge is None:
            return None
        for failed, reason in ((judge.disk_taken(row), DISK_CONFLICT), (judge.in_use(), ONE_POD_CONFLICT)):
            if failed:
                return Refusal(plugin=self.name, reasons=(reason,), code=UNSCHEDULABLE)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        judge = self.judge(pod, rows)
        if judge is None:
            return []
        taken = judge.disks_taken()
        return [(DISK_CONFLICT, taken), (ONE_POD_CONFLICT, ~taken & judge.in_use())]
