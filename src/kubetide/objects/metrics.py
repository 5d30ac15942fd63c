"""metrics.k8s.io/v1beta1 PodMetrics and NodeMetrics."""

from __future__ import annotations

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject


class ContainerMetrics(ApiStruct):
    name: str = ""
    usage: Quantities | None = None


class PodMetrics(ApiObject):
    timestamp: str | None = None
    window: str = ""
    containers: tuple[ContainerMetrics, ...] | None = None


class NodeMetrics(ApiObject):
    timestamp: str | None = None
    window: str = ""
    usage: Quantities | None = None
