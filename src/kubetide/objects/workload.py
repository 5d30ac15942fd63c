"""apps/v1 Deployment, ReplicaSet, DaemonSet, core/v1 ReplicationController, and autoscaling/v1 Scale."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject, Condition, LabelSelector
from kubetide.objects.pod import PodTemplate


class RollingUpdate(ApiStruct):
    max_surge: str | int | None = None
    max_unavailable: str | int | None = None


class DeploymentStrategy(ApiStruct):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(ApiStruct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    strategy: DeploymentStrategy = field(default_factory=DeploymentStrategy)
    min_ready_seconds: int = 0
    paused: bool = False
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None


class WorkloadStatus(ApiStruct):
    """Status of a Deployment or a ReplicaSet."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    unavailable_replicas: int = 0
    fully_labeled_replicas: int = 0
    collision_count: int = 0
    conditions: tuple[Condition, ...] | None = None


class Deployment(ApiObject):
    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


class ReplicaSetSpec(ApiStruct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    min_ready_seconds: int = 0


class ReplicaSet(ApiObject):
    spec: ReplicaSetSpec = field(default_factory=ReplicaSetSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


class ReplicationControllerSpec(ApiStruct):
    """Its ``selector`` is a map of labels, not a label selector."""

    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None
    min_ready_seconds: int = 0


class ReplicationController(ApiObject):
    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


class DaemonSetSpec(ApiStruct):
    selector: LabelSelector | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    update_strategy: DeploymentStrategy = field(default_factory=DeploymentStrategy)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(ApiStruct):
    observed_generation: int = 0
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    number_misscheduled: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(ApiObject):
    spec: DaemonSetSpec = field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)


class ScaleSpec(ApiStruct):
    replicas: int = 0


class ScaleStatus(ApiStruct):
    replicas: int = 0
    selector: str = ""


class Scale(ApiObject):
    """The ``scale`` subresource of any kind that has one (autoscaling/v1)."""

    spec: ScaleSpec = field(default_factory=ScaleSpec)
    status: ScaleStatus = field(default_factory=ScaleStatus)
