"""What becomes of a claim: which volume it gets, which is made for it, or why it waits. Pure.

Source: kube-controller-manager v1.36, persistentvolume controller. Whatever a storage class names as its
provisioner makes volumes here, at once and of any size: what an external provisioner would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.kinds import CLAIMS
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubetide.scheduling.filters.binding_rules import NO_PROVISIONER, is_claimed_by, match_static
from kubetide.scheduling.snapshot.volumes import BIND_COMPLETED, SELECTED_NODE, Volumes, is_bound
from kubetide.units.names import dns1123_subdomain_errors

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_LONGEST_DRIVER = 63
_MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI drivers that do the work of provisioners that were once part of Kubernetes."""
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class Bind(msgspec.Struct, frozen=True):
    """The claim gets a volume that is there."""

    volume: PersistentVolume


class Provision(msgspec.Struct, frozen=True):
    """A volume is to be made for the claim."""

    storage_class: StorageClass


class Wait(msgspec.Struct, frozen=True):
    """The claim stays as it is; ``reason`` and ``message`` are of the event about it, empty for none."""

    reason: str = ""
    message: str = ""
    level: Literal["Normal", "Warning"] = "Normal"


Step = Bind | Provision | Wait


def plan_claim(claim: PersistentVolumeClaim, volumes: Volumes) -> Step:
    """Return the next step for a claim that has no volume for good."""
    named = claim.spec.volume_name
    if named:
        volume = volumes.persistent_volumes.get(named)
        if volume is None:
            return Wait("FailedBinding", f'volume "{named}" not found.', "Warning")
        if volume.spec.claim_ref is None or is_claimed_by(volume, claim):
            return Bind(volume)
        return Wait("FailedBinding", f'volume "{named}" already bound to a different claim.', "Warning")
    for volume in volumes.persistent_volumes.values():
        if is_claimed_by(volume, claim):
            return Bind(volume)
    selected = SELECTED_NODE in (claim.metadata.annotations or {})
    if not selected:
        if volumes.waits_for_consumer(claim):
            return Wait("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        matches = match_static([claim], volumes, None)
        if matches.found:
            return Bind(matches.found[0][1])
    name = volumes.class_of(claim)
    if not name:
        return Wait(
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        )
    storage_class = volumes.storage_classes.get(name)
    if storage_class is None:
        return Wait("ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found', "Warning")
    if storage_class.provisioner == NO_PROVISIONER:
        return Wait()
    return Provision(storage_class)


def provisioned(
    claim: PersistentVolumeClaim, storage_class: StorageClass, labels: Mapping[str, str] | None
) -> Json:
    """Return the volume that is made for a claim.

    Args:
        claim: What is asked for.
        storage_class: Its class.
        labels: Of the node that was chosen; the volume is reached from that node's zone and region. None
            without such a node: then from the first topology that the class allows.
    """
    spec: Json = {
        "capacity": {"storage": (claim.spec.resources.requests or {}).get("storage", "0")},
        "accessModes": list(claim.spec.access_modes or ()),
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.metadata.name,
        "claimRef": reference_to(claim),
        **_source(storage_class.provisioner, claim.metadata.uid),
    }
    places = _places(storage_class, labels)
    if places:
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in places.items()]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    notes = {PROVISIONED_BY: storage_class.provisioner}
    return {"metadata": {"name": f"pvc-{claim.metadata.uid}", "annotations": notes}, "spec": spec}


def _source(provisioner: str, uid: str) -> Json:
    """Return the part of a volume that says what it is: of a CSI driver, or a folder where the provisioner is none."""
    driver = _MIGRATED.get(provisioner, provisioner)
    if len(driver) > _LONGEST_DRIVER or dns1123_subdomain_errors(driver.lower()):
        return {"hostPath": {"path": f"/var/lib/kubetide/volumes/{uid}"}}
    return {"csi": {"driver": driver, "volumeHandle": uid}}


def _places(storage_class: StorageClass, labels: Mapping[str, str] | None) -> dict[str, str]:
    topologies = storage_class.allowed_topologies or ()
    if labels is not None:
        keys = [one.key for term in topologies for one in term.match_label_expressions or ()]
        return {key: labels[key] for key in dict.fromkeys((*_ZONES, *keys)) if key in labels}
    if not topologies:
        return {}
    return {one.key: one.values[0] for one in topologies[0].match_label_expressions or () if one.values}


def reference_to(claim: PersistentVolumeClaim) -> Json:
    """Return the claimRef of a claim's volume."""
    meta = claim.metadata
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }


def volume_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Json | None:
    """Return the patch that keeps a volume for a claim, None where it is so."""
    ref = volume.spec.claim_ref
    if ref is not None and ref.uid == claim.metadata.uid:
        return None
    patch: Json = {"spec": {"claimRef": reference_to(claim)}}
    if ref is None:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return patch


def claim_patch(claim: PersistentVolumeClaim, volume_name: str) -> Json | None:
    """Return the patch that gives a claim its volume for good, None where it has it."""
    if is_bound(claim) and claim.spec.volume_name == volume_name:
        return None
    notes = {BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        notes[BOUND_BY_CONTROLLER] = "yes"
    return {"metadata": {"annotations": notes}, "spec": {"volumeName": volume_name}}


def phase_of(volume: PersistentVolume, claims: Mapping[tuple[str, str], PersistentVolumeClaim]) -> str:
    """Return the phase that a volume is in: Available, Bound or Released."""
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return "Available"
    claim = claims.get((ref.namespace, ref.name))
    if claim is None or claim.metadata.uid != ref.uid:
        return "Released"
    return "Bound" if claim.spec.volume_name == volume.metadata.name else "Available"
