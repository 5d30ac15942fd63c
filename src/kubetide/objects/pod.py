"""core/v1 Pod: the fields that scheduling, scaling and draining read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import field, structs

from kubetide.objects.base import ApiStruct, Json, Quantities
from kubetide.objects.meta import ApiObject, Condition, LabelSelector, ObjectMeta

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation: a ReplicaSet that has too many ready pods deletes those with the lowest cost first."""


class ResourceRequirements(ApiStruct):
    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(ApiStruct):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = ""
    protocol: str = ""
    name: str = ""


class VolumeMount(ApiStruct):
    name: str = ""


class ContainerRestartRule(ApiStruct):
    action: str = ""


class ContainerResizePolicy(ApiStruct):
    resource_name: str = ""
    restart_policy: str = ""


class Container(ApiStruct):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    resize_policy: tuple[ContainerResizePolicy, ...] | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None


class Toleration(ApiStruct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(ApiStruct):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(ApiStruct):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(ApiStruct):
    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(ApiStruct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(ApiStruct):
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""


class WeightedPodAffinityTerm(ApiStruct):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(ApiStruct):
    """Also the form of ``podAntiAffinity``."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(ApiStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiStruct):
    topology_key: str = ""
    max_skew: int = 1
    min_domains: int | None = None
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class EmptyDirVolume(ApiStruct):
    medium: str = ""


class ProjectedVolume(ApiStruct):
    """It matters only that it is there: nearly every pod has one, with a token, and no rule looks into it."""


class PersistentVolumeClaimVolume(ApiStruct):
    claim_name: str = ""


class GceDisk(ApiStruct):
    pd_name: str = ""
    read_only: bool = False


class AwsDisk(ApiStruct):
    volume_id: str = ""


class IscsiDisk(ApiStruct):
    iqn: str = ""
    read_only: bool = False


class RbdImage(ApiStruct):
    monitors: tuple[str, ...] | None = None
    pool: str = ""
    image: str = ""
    read_only: bool = False


class ImageVolume(ApiStruct):
    reference: str = ""


class Volume(ApiStruct):
    """A volume; of the sources only those that a rule looks into are read."""

    name: str = ""
    host_path: Json | None = None
    empty_dir: EmptyDirVolume | None = None
    projected: ProjectedVolume | None = None
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: Json | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    iscsi: IscsiDisk | None = None
    rbd: RbdImage | None = None
    image: ImageVolume | None = None


class PodResourceClaim(ApiStruct):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(ApiStruct):
    name: str = ""


class PodSpec(ApiStruct):
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None


class ContainerWaiting(ApiStruct):
    reason: str = ""


class ContainerRunning(ApiStruct):
    started_at: str | None = None


class ContainerTerminated(ApiStruct):
    exit_code: int = 0
    reason: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(ApiStruct):
    """One of the three is there; none counts as waiting."""

    waiting: ContainerWaiting | None = None
    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(ApiStruct):
    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: bool = False
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class PodResourceClaimStatus(ApiStruct):
    """The claim that was made for the pod out of a template; without a name none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiStruct):
    phase: str = ""
    conditions: tuple[Condition, ...] | None = None
    start_time: str | None = None
    nominated_node_name: str = ""
    reason: str = ""
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None


class Pod(ApiObject):
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class PodTemplate(ApiStruct):
    """The pod template inside a workload."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)


def pod_condition(pod: Pod, kind: str) -> Condition | None:
    """Return the pod's condition of that type, or None."""
    for condition in pod.status.conditions or ():
        if condition.type == kind:
            return condition
    return None


def deletion_cost(annotations: Mapping[str, str] | None) -> int | None:
    """Return the cost that a pod's annotations give it, 0 for one that is no 32-bit integer; None without one."""
    text = (annotations or {}).get(DELETION_COST)
    if text is None:
        return None
    digits = text.removeprefix("-")
    # Upstream accepts neither a plus sign nor leading zeros.
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        return 0
    cost = int(text)
    return cost if -(1 << 31) <= cost < 1 << 31 else 0


def is_finished(pod: Pod) -> bool:
    """Return whether the pod has ended, well or badly."""
    return pod.status.phase in {"Succeeded", "Failed"}


def ends_by_itself(pod: Pod) -> bool:
    """Return whether the pod runs to completion: its kubelet does not start it again once it has succeeded."""
    return pod.spec.restart_policy in {"Never", "OnFailure"}


def acting_containers(pod: Pod) -> tuple[Container, ...] | None:
    """Return the containers with the resources they run with: those of the spec, unless the status has others."""
    reported = {
        status.name: status.resources
        for status in pod.status.container_statuses or ()
        if status.resources is not None
    }
    containers = pod.spec.containers
    if not reported or containers is None:
        return containers
    return tuple(structs.replace(c, resources=reported.get(c.name, c.resources)) for c in containers)


def priority_of(pod: Pod) -> int:
    """Return the pod's priority, 0 when it has none."""
    return pod.spec.priority or 0
