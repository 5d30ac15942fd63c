"""VolumeZone: a volume labelled with zones or regions is reachable only from there."""

from __future__ import annotations

import numpy as np

from kubetide.objects.storage import PersistentVolumeClaim
from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.snapshot.volumes import ModeUnknown, Volumes
from kubetide.units.vectors import BoolVector

REASON = "node(s) had no available volume zone"

_BETA_OF = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_KEYS = (*_BETA_OF, *_BETA_OF.values())
_SEPARATOR = "__"


class VolumeZone:
    """Source: kube-scheduler v1.36 VolumeZone. Claims of ephemeral volumes are ignored."""

    name = "VolumeZone"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:
        volumes = rows.facts.volumes
        for use in pod.claims if volumes is not None else ():
            if volumes is None or use.owner:
                continue
            claim = volumes.claim(use)
            problem = (
                f'persistentvolumeclaim "{use.name}" not found' if claim is None else _problem(claim, volumes)
            )
            if problem:
                return Refusal(plugin=self.name, reasons=(problem,), phase="PreFilter", detail=problem)
        return None

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        places = _places(pod, rows.facts.volumes)
        if not places:
            return None
        passes = np.ones(rows.n, np.bool_)
        labelled = np.zeros(rows.n, np.bool_)
        for key in _KEYS:
            labelled |= rows.label(key).codes[: rows.n] != 0
        for key, values in places:
            label = rows.label(key)
            codes = label.codes[: rows.n]
            here = np.isin(codes, [label.code_of[value] for value in values if value in label.code_of])
            if key in _BETA_OF:
                newer = rows.label(_BETA_OF[key])
                known = [newer.code_of[value] for value in values if value in newer.code_of]
                here |= (codes == 0) & np.isin(newer.codes[: rows.n], known)
            passes &= here
        return passes | ~labelled

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        labels = labels_of(rows.nodes[row])
        if not any(key in labels for key in _KEYS):
            return None
        for key, values in _places(pod, rows.facts.volumes):
            found = labels.get(key, labels.get(_BETA_OF.get(key, key)))
            if found not in values:
                detail = f"the volume is in {key}={_SEPARATOR.join(values)}"
                return Refusal(plugin=self.name, reasons=(REASON,), detail=detail)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        passes = self.passes(pod, rows)
        return [] if passes is None else [(REASON, ~passes)]


def _problem(claim: PersistentVolumeClaim, volumes: Volumes) -> str:
    """Return why the claim's volume cannot be looked up; empty when it can, or is made later."""
    if claim.spec.volume_name:
        if claim.spec.volume_name in volumes.persistent_volumes:
            return ""
        return f'persistentvolume "{claim.spec.volume_name}" not found'
    name = volumes.class_of(claim)
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    if name not in volumes.storage_classes:
        return f'storageclass.storage.k8s.io "{name}" not found'
    try:
        return "" if volumes.waits_for_consumer(claim) else "PersistentVolume had no name"
    except ModeUnknown as error:
        return str(error)


def _places(pod: PodClass, volumes: Volumes | None) -> list[tuple[str, tuple[str, ...]]]:
    """The labels of the pod's volumes that bind nodes, with the values that each allows."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for use in pod.claims if volumes is not None else ():
        claim = None if volumes is None or use.owner else volumes.claim(use)
        if claim is None or volumes is None:
            continue
        volume = volumes.persistent_volumes.get(claim.spec.volume_name)
        labels = (volume.metadata.labels or {}) if volume is not None else {}
        for key in _KEYS:
            values = tuple(part.strip() for part in labels[key].split(_SEPARATOR)) if key in labels else ()
            # A value that cannot be read is passed over, as upstream does.
            if values and all(values):
                found.append((key, values))
    return found
