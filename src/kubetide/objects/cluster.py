"""core/v1 Event and ConfigMap, coordination.k8s.io/v1 Lease."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject


class ObjectReference(ApiStruct):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(ApiStruct):
    component: str = ""
    host: str = ""


class Event(ApiObject):
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    involved_object: ObjectReference = field(default_factory=ObjectReference)
    source: EventSource = field(default_factory=EventSource)
    first_timestamp: str | None = None
    last_timestamp: str | None = None


class ConfigMap(ApiObject):
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    immutable: bool | None = None


class LeaseSpec(ApiStruct):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiObject):
    spec: LeaseSpec = field(default_factory=LeaseSpec)
