"""Services: kube-scheduler spreads the pods that one selects."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject


class ServiceSpec(ApiStruct):
    """Its ``selector`` is a map of labels; None selects nothing."""

    selector: dict[str, str] | None = None


class Service(ApiObject):
    spec: ServiceSpec = field(default_factory=ServiceSpec)
