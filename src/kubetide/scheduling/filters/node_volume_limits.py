"""NodeVolumeLimits: a node attaches a limited number of volumes of a CSI driver."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from kubetide.objects.storage import PersistentVolumeClaim
from kubetide.scheduling.columns.pod_index import Choice
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import UNSCHEDULABLE, Refusal
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.volumes import Volumes, is_made_for
from kubetide.units.vectors import BoolVector

REASON = "node(s) exceed max volume count"
MISSING = "{} CSI driver is not installed on the node"

Attached = dict[tuple[str, str], None]
"""(driver, volume handle), each once."""


class PodsWithClaims(msgspec.Struct, frozen=True):
    """The pods that use any claim."""

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted."""
        return bool(pod.claims)

    def choices(self) -> tuple[Choice, ...]:
        """Empty: the index cannot find these pods."""
        return ()


class VolumeLimitsJudge:
    """Checks nodes that have a limit for one of the pod's drivers, or lack one that must be there; the others pass."""

    only_tightens = True
    terms = None

    def __init__(self, requested: Attached, volumes: Volumes, rows: Rows) -> None:
        self._requested = requested
        self._volumes = volumes
        self._rows = rows
        self._with_claims = rows.count_column(PodsWithClaims())
        drivers = dict.fromkeys(driver for driver, _ in requested)
        self._limits: dict[int, dict[str, int]] = {}
        for name, csi_node in volumes.csi_nodes.items():
            limits = {
                one.name: one.allocatable.count
                for one in csi_node.spec.drivers or ()
                if one.name in drivers and one.allocatable is not None and one.allocatable.count is not None
            }
            if limits and name in rows.row_of:
                self._limits[rows.row_of[name]] = limits
        self._missing = _missing_drivers(drivers, volumes, rows)
        self._attached: dict[int, Attached] = {}
        for attachment in volumes.attachments:
            row = rows.row_of.get(attachment.spec.node_name)
            handle = _handle_of_volume(attachment.spec.source.persistent_volume_name or "", volumes)
            if row is not None and handle is not None:
                self._attached.setdefault(row, {})[handle] = None

    def nodes(self) -> BoolVector:
        passes = np.ones(self._rows.n, np.bool_)
        for row in self._limits:
            passes[row] = self.exceeded(row) is None
        for lacks in self._missing.values():
            passes &= ~lacks
        return passes

    def node(self, row: int) -> bool:
        return self.missing(row) is None and self.exceeded(row) is None

    def missing(self, row: int) -> str | None:
        """Return the driver that must be on the node and is not, or None."""
        return next((driver for driver, lacks in self._missing.items() if lacks[row]), None)

    def failures(self) -> list[tuple[str, BoolVector]]:
        """Return each reason with the nodes that it applies to."""
        over = np.zeros(self._rows.n, np.bool_)
        for row in self._limits:
            over[row] = self.missing(row) is None and self.exceeded(row) is not None
        told = np.zeros(self._rows.n, np.bool_)
        found = []
        for driver, lacks in self._missing.items():
            found.append((MISSING.format(driver), lacks & ~told))
            told |= lacks
        return [*found, (REASON, over)]

    def exceeded(self, row: int) -> str | None:
        """Return the driver whose limit the node would exceed, or None."""
        limits = self._limits.get(row)
        if limits is None:
            return None
        in_use: Attached = {}
        if self._with_claims.at(row):
            for pod in self._rows.pods_on(row):
                in_use.update(_volumes_of(pod, self._volumes))
        there: Attached = {**self._attached.get(row, {}), **in_use}
        for driver, most in limits.items():
            # A volume that is attached while no pod there uses it counts as attached and as new, as upstream
            # takes it for one that is being detached.
            new = sum(one[0] == driver and one not in in_use for one in self._requested)
            if new and sum(one[0] == driver for one in there) + new > most:
                return driver
        return None


class NodeVolumeLimits:
    """Source: kube-scheduler v1.36 and v1.37 NodeVolumeLimits (CSI)."""

    name = "NodeVolumeLimits"

    def problem(self, pod: PodClass, rows: Rows) -> str:
        """Return why the pod's claims cannot be counted, which rejects every node; empty if they can."""
        volumes = rows.facts.volumes
        for use in pod.claims if volumes is not None else ():
            where = f"looking up PVC {use.namespace}/{use.name}: "
            claim = None if volumes is None else volumes.claim(use)
            if claim is None:
                return f'{where}persistentvolumeclaim "{use.name}" not found'
            if use.owner and not is_made_for(claim, use):
                made_for = f"pod {use.namespace}/{use.owner[1]} (pod is not owner)"
                return f"PVC {use.namespace}/{use.name} was not created for {made_for}"
        return ""

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        return np.zeros(rows.n, np.bool_) if self.problem(pod, rows) else None

    def judge(self, pod: PodClass, rows: Rows) -> VolumeLimitsJudge | None:
        volumes = rows.facts.volumes
        if not pod.claims or volumes is None or self.problem(pod, rows):
            return None
        if not volumes.csi_nodes and not rows.facts.volume_limit_scaling:
            return None
        requested = _volumes_of(pod, volumes)
        return VolumeLimitsJudge(requested, volumes, rows) if requested else None

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        problem = self.problem(pod, rows)
        if problem:
            return Refusal(plugin=self.name, reasons=(problem,), detail=problem)
        judge = self.judge(pod, rows)
        if judge is None:
            return None
        missing = judge.missing(row)
        if missing is not None:
            return Refusal(
                plugin=self.name,
                reasons=(MISSING.format(missing),),
                code=UNSCHEDULABLE,
                detail="of its CSINode",
            )
        driver = judge.exceeded(row)
        if driver is None:
            return None
        return Refusal(plugin=self.name, reasons=(REASON,), code=UNSCHEDULABLE, detail=f"of driver {driver}")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        problem = self.problem(pod, rows)
        if problem:
            return [(problem, np.ones(rows.n, np.bool_))]
        judge = self.judge(pod, rows)
        return [] if judge is None else judge.failures()


def _missing_drivers(drivers: Iterable[str], volumes: Volumes, rows: Rows) -> dict[str, BoolVector]:
    """Return the nodes that lack each driver whose object keeps pods off such nodes."""
    found: dict[str, BoolVector] = {}
    if not rows.facts.volume_limit_scaling:
        return found
    for driver in drivers:
        known = volumes.csi_drivers.get(driver)
        if known is None or not known.spec.prevent_pod_scheduling_if_missing:
            continue
        lacks = np.ones(rows.n, np.bool_)
        for name, csi_node in volumes.csi_nodes.items():
            if name in rows.row_of and any(one.name == driver for one in csi_node.spec.drivers or ()):
                lacks[rows.row_of[name]] = False
        if lacks.any():
            found[driver] = lacks
    return found


def _volumes_of(pod: PodClass, volumes: Volumes) -> Attached:
    found: Attached = {}
    for use in pod.claims:
        claim = volumes.claim(use)
        handle = None if claim is None else _handle_of_claim(claim, volumes)
        if handle is not None:
            found[handle] = None
    return found


def _handle_of_claim(claim: PersistentVolumeClaim, volumes: Volumes) -> tuple[str, str] | None:
    """The driver and volume of a claim; one that is not bound counts by its class and its own name."""
    if claim.spec.volume_name in volumes.persistent_volumes:
        return _handle_of_volume(claim.spec.volume_name, volumes)
    found = volumes.storage_classes.get(volumes.class_of(claim))
    if found is None:
        return None
    return found.provisioner, f"claim {claim.metadata.namespace}/{claim.metadata.name}"


def _handle_of_volume(name: str, volumes: Volumes) -> tuple[str, str] | None:
    volume = volumes.persistent_volumes.get(name)
    if volume is None or volume.spec.csi is None:
        return None
    return volume.spec.csi.driver, volume.spec.csi.volume_handle
