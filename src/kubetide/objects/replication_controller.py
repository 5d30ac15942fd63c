"""core/v1 ReplicationController: what is read of it."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject


class ReplicationControllerSpec(ApiStruct):
    replicas: int | None = None


class ReplicationController(ApiObject):
    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)
