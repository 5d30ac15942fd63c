"""apps/v1 StatefulSet, and the ControllerRevisions that keep its templates."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Json
from kubetide.objects.meta import ApiObject, Condition, LabelSelector, ObjectMeta
from kubetide.objects.pod import PodTemplate


class StatefulSetRollingUpdate(ApiStruct):
    partition: int | None = None
    max_unavailable: str | int | None = None


class StatefulSetUpdateStrategy(ApiStruct):
    type: str = ""
    rolling_update: StatefulSetRollingUpdate | None = None


class StatefulSetOrdinals(ApiStruct):
    start: int = 0


class VolumeClaimTemplate(ApiStruct):
    """A claim that each pod gets under its own name; only the name is read."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class ClaimRetentionPolicy(ApiStruct):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetSpec(ApiStruct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = field(default_factory=StatefulSetUpdateStrategy)
    ordinals: StatefulSetOrdinals | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    volume_claim_templates: tuple[VolumeClaimTemplate, ...] | None = None
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy | None = None


class StatefulSetStatus(ApiStruct):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[Condition, ...] | None = None


class StatefulSet(ApiObject):
    spec: StatefulSetSpec = field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)


class ControllerRevision(ApiObject):
    """One template that a StatefulSet has had; ``data`` is the part of the object that it restores."""

    data: Json | None = None
    revision: int = 0
