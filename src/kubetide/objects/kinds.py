"""The registry of kinds: one line a kind, and where each is served.

A new API type is a struct in this folder and one line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from kubetide.objects.base import Json
from kubetide.objects.batch import CronJob, Job
from kubetide.objects.capacity import CapacityBuffer, CapacityQuota, PodTemplateObject, ProvisioningRequest
from kubetide.objects.cluster import ConfigMap, Event, Lease
from kubetide.objects.definition import CustomResourceDefinition
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.hpa_v1 import HorizontalPodAutoscalerV1
from kubetide.objects.inert import (
    Ingress,
    IngressClass,
    NetworkPolicy,
    Secret,
    ServiceAccount,
)
from kubetide.objects.limit_range import LimitRange
from kubetide.objects.metrics import NodeMetrics, PodMetrics
from kubetide.objects.node import Namespace, Node
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget, PriorityClass
from kubetide.objects.quota import ResourceQuota
from kubetide.objects.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kubetide.objects.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kubetide.objects.service import Service
from kubetide.objects.statefulset import ControllerRevision, StatefulSet
from kubetide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubetide.objects.timetables import (
    CronHorizontalPodAutoscaler,
    CronHpa,
    HorizontalPodCronscaler,
    ScaledObject,
)
from kubetide.objects.vpa import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from kubetide.objects.webhooks import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController

T = TypeVar("T")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """What identifies a kind, where it is served, and the type its objects are read as."""

    group: str
    version: str
    kind: str
    plural: str
    model: type[T]
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()

    @cached_property
    def api_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def resource(self) -> str:
        """``pods`` or ``deployments.apps``: the name that error messages use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def untyped(self) -> Kind[Json]:
        """The same kind, its objects read as plain JSON with every field."""
        return Kind(
            group=self.group,
            version=self.version,
            kind=self.kind,
            plural=self.plural,
            model=dict,
            namespaced=self.namespaced,
            subresources=self.subresources,
            short_names=self.short_names,
        )


PODS = Kind(
    "",
    "v1",
    "Pod",
    "pods",
    Pod,
    subresources=("status", "binding", "eviction", "resize"),
    short_names=("po",),
)
NODES = Kind("", "v1", "Node", "nodes", Node, namespaced=False, subresources=("status",), short_names=("no",))
NAMESPACES = Kind(
    "",
    "v1",
    "Namespace",
    "namespaces",
    Namespace,
    namespaced=False,
    subresources=("status",),
    short_names=("ns",),
)
EVENTS = Kind("", "v1", "Event", "events", Event, short_names=("ev",))
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps", ConfigMap, short_names=("cm",))
DEPLOYMENTS = Kind(
    "apps",
    "v1",
    "Deployment",
    "deployments",
    Deployment,
    subresources=("status", "scale"),
    short_names=("deploy",),
)
REPLICA_SETS = Kind(
    "apps",
    "v1",
    "ReplicaSet",
    "replicasets",
    ReplicaSet,
    subresources=("status", "scale"),
    short_names=("rs",),
)
DAEMON_SETS = Kind(
    "apps", "v1", "DaemonSet", "daemonsets", DaemonSet, subresources=("status",), short_names=("ds",)
)
STATEFUL_SETS = Kind(
    "apps",
    "v1",
    "StatefulSet",
    "statefulsets",
    StatefulSet,
    subresources=("status", "scale"),
    short_names=("sts",),
)
REPLICATION_CONTROLLERS = Kind(
    "",
    "v1",
    "ReplicationController",
    "replicationcontrollers",
    ReplicationController,
    subresources=("status", "scale"),
    short_names=("rc",),
)
LIMIT_RANGES = Kind("", "v1", "LimitRange", "limitranges", LimitRange, short_names=("limits",))
CONTROLLER_REVISIONS = Kind("apps", "v1", "ControllerRevision", "controllerrevisions", ControllerRevision)
JOBS = Kind("batch", "v1", "Job", "jobs", Job, subresources=("status",))
CRON_JOBS = Kind("batch", "v1", "CronJob", "cronjobs", CronJob, subresources=("status",), short_names=("cj",))
HPAS = Kind(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    HorizontalPodAutoscaler,
    subresources=("status",),
    short_names=("hpa",),
)
HPAS_V1 = Kind(
    "autoscaling",
    "v1",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    HorizontalPodAutoscalerV1,
    subresources=("status",),
    short_names=("hpa",),
)
"""The same objects as ``HPAS``, as the older version shows them."""
PDBS = Kind(
    "policy",
    "v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    PodDisruptionBudget,
    subresources=("status",),
    short_names=("pdb",),
)
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases", Lease)
PRIORITY_CLASSES = Kind(
    "scheduling.k8s.io",
    "v1",
    "PriorityClass",
    "priorityclasses",
    PriorityClass,
    namespaced=False,
    short_names=("pc",),
)
PERSISTENT_VOLUMES = Kind(
    "",
    "v1",
    "PersistentVolume",
    "persistentvolumes",
    PersistentVolume,
    namespaced=False,
    subresources=("status",),
    short_names=("pv",),
)
CLAIMS = Kind(
    "",
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    PersistentVolumeClaim,
    subresources=("status",),
    short_names=("pvc",),
)
_STORAGE = "storage.k8s.io"
STORAGE_CLASSES = Kind(
    _STORAGE, "v1", "StorageClass", "storageclasses", StorageClass, namespaced=False, short_names=("sc",)
)
CSI_NODES = Kind(_STORAGE, "v1", "CSINode", "csinodes", CSINode, namespaced=False)
CSI_DRIVERS = Kind(_STORAGE, "v1", "CSIDriver", "csidrivers", CSIDriver, namespaced=False)
CSI_CAPACITIES = Kind(_STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities", CSIStorageCapacity)
VOLUME_ATTACHMENTS = Kind(
    _STORAGE,
    "v1",
    "VolumeAttachment",
    "volumeattachments",
    VolumeAttachment,
    namespaced=False,
    subresources=("status",),
)
_DEVICES = "resource.k8s.io"
RESOURCE_SLICES = Kind(_DEVICES, "v1", "ResourceSlice", "resourceslices", ResourceSlice, namespaced=False)
DEVICE_CLASSES = Kind(_DEVICES, "v1", "DeviceClass", "deviceclasses", DeviceClass, namespaced=False)
RESOURCE_CLAIMS = Kind(
    _DEVICES, "v1", "ResourceClaim", "resourceclaims", ResourceClaim, subresources=("status",)
)
RESOURCE_CLAIM_TEMPLATES = Kind(
    _DEVICES, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", ResourceClaimTemplate
)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    MutatingWebhookConfiguration,
    namespaced=False,
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    ValidatingWebhookConfiguration,
    namespaced=False,
)
HPCS = Kind(
    "autoscaling.cloud.tencent.com",
    "v1",
    "HorizontalPodCronscaler",
    "horizontalpodcronscalers",
    HorizontalPodCronscaler,
    subresources=("status",),
    short_names=("hpc",),
)
CRON_HPAS = Kind(
    "autoscaling.alibabacloud.com",
    "v1beta1",
    "CronHorizontalPodAutoscaler",
    "cronhorizontalpodautoscalers",
    CronHorizontalPodAutoscaler,
    subresources=("status",),
    short_names=("cronhpa",),
)
TKESTACK_CRON_HPAS = Kind("extensions.tkestack.io", "v1", "CronHPA", "cronhpas", CronHpa)
SCALED_OBJECTS = Kind(
    "keda.sh",
    "v1alpha1",
    "ScaledObject",
    "scaledobjects",
    ScaledObject,
    subresources=("status",),
    short_names=("so",),
)
CUSTOM_RESOURCE_DEFINITIONS = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    CustomResourceDefinition,
    namespaced=False,
    subresources=("status",),
    short_names=("crd", "crds"),
)
"""Served by the embedded cluster beside ``STORED_KINDS``; what they define is served as well."""
SERVICES = Kind("", "v1", "Service", "services", Service, subresources=("status",), short_names=("svc",))
RESOURCE_QUOTAS = Kind(
    "",
    "v1",
    "ResourceQuota",
    "resourcequotas",
    ResourceQuota,
    subresources=("status",),
    short_names=("quota",),
)
_NETWORKING = "networking.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
ROLES = Kind(_RBAC, "v1", "Role", "roles", Role)
ROLE_BINDINGS = Kind(_RBAC, "v1", "RoleBinding", "rolebindings", RoleBinding)
CLUSTER_ROLES = Kind(_RBAC, "v1", "ClusterRole", "clusterroles", ClusterRole, namespaced=False)
CLUSTER_ROLE_BINDINGS = Kind(
    _RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", ClusterRoleBinding, namespaced=False
)
INERT_KINDS: tuple[Kind[Any], ...] = (
    SERVICES,
    Kind("", "v1", "Secret", "secrets", Secret),
    Kind("", "v1", "ServiceAccount", "serviceaccounts", ServiceAccount, short_names=("sa",)),
    RESOURCE_QUOTAS,
    Kind(_NETWORKING, "v1", "Ingress", "ingresses", Ingress, subresources=("status",), short_names=("ing",)),
    Kind(_NETWORKING, "v1", "IngressClass", "ingressclasses", IngressClass, namespaced=False),
    Kind(_NETWORKING, "v1", "NetworkPolicy", "networkpolicies", NetworkPolicy, short_names=("netpol",)),
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
)
"""What applications and charts bring beside workloads: stored and shown. Services spread pods, Roles grant rights, ResourceQuotas limit CapacityBuffers; the rest has no effect."""
_VERTICAL = "autoscaling.k8s.io"
VPAS = Kind(
    _VERTICAL,
    "v1",
    "VerticalPodAutoscaler",
    "verticalpodautoscalers",
    VerticalPodAutoscaler,
    subresources=("status",),
    short_names=("vpa",),
)
VPAS_V1BETA2 = Kind(
    _VERTICAL,
    "v1beta2",
    "VerticalPodAutoscaler",
    "verticalpodautoscalers",
    VerticalPodAutoscaler,
    subresources=("status",),
    short_names=("vpa",),
)
VPA_CHECKPOINTS = Kind(
    _VERTICAL,
    "v1",
    "VerticalPodAutoscalerCheckpoint",
    "verticalpodautoscalercheckpoints",
    VerticalPodAutoscalerCheckpoint,
    short_names=("vpacheckpoint",),
)
VPA_CHECKPOINTS_V1BETA2 = Kind(
    _VERTICAL,
    "v1beta2",
    "VerticalPodAutoscalerCheckpoint",
    "verticalpodautoscalercheckpoints",
    VerticalPodAutoscalerCheckpoint,
    short_names=("vpacheckpoint",),
)
_CAPACITY = "autoscaling.x-k8s.io"
POD_TEMPLATES = Kind("", "v1", "PodTemplate", "podtemplates", PodTemplateObject)
PROVISIONING_REQUESTS = Kind(
    _CAPACITY,
    "v1",
    "ProvisioningRequest",
    "provisioningrequests",
    ProvisioningRequest,
    subresources=("status",),
    short_names=("provreq", "provreqs"),
)
CAPACITY_BUFFERS = Kind(
    _CAPACITY,
    "v1beta1",
    "CapacityBuffer",
    "capacitybuffers",
    CapacityBuffer,
    subresources=("status",),
    short_names=("cb",),
)
CAPACITY_QUOTAS = Kind(
    _CAPACITY,
    "v1beta1",
    "CapacityQuota",
    "capacityquotas",
    CapacityQuota,
    namespaced=False,
    subresources=("status",),
    short_names=("cq",),
)
CAPACITY_KINDS: tuple[Kind[Any], ...] = (PROVISIONING_REQUESTS, CAPACITY_BUFFERS, CAPACITY_QUOTAS)
"""Custom kinds that the node loop reads and writes where its flags say so."""
ELASTIC_WORKLOADS = Kind(
    "kubetide.dev",
    "v1alpha1",
    "ElasticWorkload",
    "elasticworkloads",
    ElasticWorkload,
    subresources=("status",),
    short_names=("ew",),
)
"""Our own: a cluster has it once its definition is installed."""
VERTICAL_KINDS: tuple[Kind[Any], ...] = (VPAS, VPAS_V1BETA2, VPA_CHECKPOINTS, VPA_CHECKPOINTS_V1BETA2)
"""Custom kinds that the vertical loop reads and writes; a cluster has them once their definitions are installed."""

POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", PodMetrics)
NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", NodeMetrics, namespaced=False)

TIME_TABLE_KINDS: tuple[Kind[Any], ...] = (HPCS, CRON_HPAS, TKESTACK_CRON_HPAS, SCALED_OBJECTS)
"""Custom kinds that set replicas or bounds by the clock; a cluster has them once their definitions are installed."""

VOLUME_KINDS: tuple[Kind[Any], ...] = (
    PERSISTENT_VOLUMES,
    CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_CAPACITIES,
    VOLUME_ATTACHMENTS,
)
"""What the scheduler's filters for volumes read."""

DEVICE_KINDS: tuple[Kind[Any], ...] = (RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_CLASSES)
"""What the scheduler's filter for devices reads."""

STORED_KINDS: tuple[Kind[Any], ...] = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    REPLICA_SETS,
    DAEMON_SETS,
    STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    CRON_JOBS,
    HPAS,
    PDBS,
    LEASES,
    POD_TEMPLATES,
    PRIORITY_CLASSES,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    *VOLUME_KINDS,
    *DEVICE_KINDS,
    RESOURCE_CLAIM_TEMPLATES,
    *INERT_KINDS,
)
"""Kinds that a cluster stores; metrics are computed on reading."""

KINDS: dict[tuple[str, str], Kind[Any]] = {
    (kind.api_version, kind.kind): kind
    for kind in (*STORED_KINDS, *TIME_TABLE_KINDS, POD_METRICS, NODE_METRICS)
}
"""By (apiVersion, kind), as they stand in a manifest."""

_BY_PLACE: dict[tuple[str, str, str, str], Kind[Any]] = {
    (kind.group, kind.version, kind.kind, kind.plural): kind
    for kind in (
        *STORED_KINDS,
        HPAS_V1,
        CUSTOM_RESOURCE_DEFINITIONS,
        REPLICATION_CONTROLLERS,
        LIMIT_RANGES,
        *VERTICAL_KINDS,
        *CAPACITY_KINDS,
        ELASTIC_WORKLOADS,
        *TIME_TABLE_KINDS,
        POD_METRICS,
        NODE_METRICS,
    )
}


_CUSTOM_GROUPS = frozenset(
    kind.group for kind in (*TIME_TABLE_KINDS, *VERTICAL_KINDS, *CAPACITY_KINDS, ELASTIC_WORKLOADS)
)


def may_be_unreadable(kind: Kind[Any]) -> bool:
    """Return whether a server may hold objects of a kind that cannot be read as its type.

    Of built-in kinds it checks the fields itself. Of custom ones a CustomResourceDefinition does, which may be older or
    newer than the type, or check nothing.
    """
    return kind.group in _CUSTOM_GROUPS and kind.model is not dict


def as_registered(kind: Kind[Any]) -> Kind[Any]:
    """Return the registered kind that is served at the same place, with its type; else the kind as it is."""
    return _BY_PLACE.get((kind.group, kind.version, kind.kind, kind.plural), kind)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return what versions of a group are sorted by, the preferred first: v2, v1, v1beta2, v1beta1, v1alpha1.

    Source: apimachinery v1.36, CompareKubeAwareVersionStrings; other names follow in order of text.
    """
    stem, stage, minor = version.removeprefix("v"), 0, ""
    for rank, word in ((1, "beta"), (2, "alpha")):
        if word in stem:
            stem, _, minor = stem.partition(word)
            stage = rank
    if not stem.isdecimal():
        return (3, 0, 0, version)
    return (stage, -int(stem), -int(minor or "0"), "")
