"""core/v1 LimitRange: bounds and defaults of what containers and pods of a namespace may ask for."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject


class LimitRangeItem(ApiStruct):
    """Bounds for one ``type``: Container, Pod or PersistentVolumeClaim."""

    type: str = ""
    max: Quantities | None = None
    min: Quantities | None = None
    default: Quantities | None = None
    default_request: Quantities | None = None
    max_limit_request_ratio: Quantities | None = None


class LimitRangeSpec(ApiStruct):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(ApiObject):
    spec: LimitRangeSpec = field(default_factory=LimitRangeSpec)
