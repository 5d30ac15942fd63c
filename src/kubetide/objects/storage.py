"""core/v1 and storage.k8s.io/v1 objects of volumes: the fields that scheduling and binding read."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject, LabelSelector
from kubetide.objects.pod import NodeSelector


class VolumeNodeAffinity(ApiStruct):
    required: NodeSelector | None = None


class ClaimReference(ApiStruct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(ApiStruct):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(ApiStruct):
    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(ApiStruct):
    phase: str = ""


class PersistentVolume(ApiObject):
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)


class ClaimResources(ApiStruct):
    requests: Quantities | None = None
    limits: Quantities | None = None


class PersistentVolumeClaimSpec(ApiStruct):
    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: ClaimResources = field(default_factory=ClaimResources)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiStruct):
    phase: str = ""
    capacity: Quantities | None = None


class PersistentVolumeClaim(ApiObject):
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class TopologyExpression(ApiStruct):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(ApiStruct):
    match_label_expressions: tuple[TopologyExpression, ...] | None = None


class StorageClass(ApiObject):
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class VolumeCount(ApiStruct):
    count: int | None = None


class CsiNodeDriver(ApiStruct):
    name: str = ""
    node_id: str = ""
    topology_keys: tuple[str, ...] | None = None
    allocatable: VolumeCount | None = None


class CsiNodeSpec(ApiStruct):
    drivers: tuple[CsiNodeDriver, ...] | None = None


class CSINode(ApiObject):
    """Has the name of its node."""

    spec: CsiNodeSpec = field(default_factory=CsiNodeSpec)


class CsiDriverSpec(ApiStruct):
    volume_lifecycle_modes: tuple[str, ...] | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiObject):
    spec: CsiDriverSpec = field(default_factory=CsiDriverSpec)


class CSIStorageCapacity(ApiObject):
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None
    node_topology: LabelSelector | None = None


class AttachmentSource(ApiStruct):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = field(default_factory=AttachmentSource)


class VolumeAttachment(ApiObject):
    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
