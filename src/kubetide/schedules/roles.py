"""The API requests of the loop."""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, EVENTS, Grant, Role

_TABLES: Final = (
    ("autoscaling.cloud.tencent.com", "horizontalpodcronscalers", "/status"),
    ("autoscaling.alibabacloud.com", "cronhorizontalpodautoscalers", "/status"),
    ("extensions.tkestack.io", "cronhpas", ""),
    ("keda.sh", "scaledobjects", "/status"),
    ("kubetide.dev", "elasticworkloads", "/status"),
)

SCHEDULES: Final = Role(
    "ClusterRole",
    "kubetide-schedules",
    (
        *(Grant(CACHED, group, (plural,)) for group, plural, _ in _TABLES),
        Grant(("get",), "autoscaling", ("horizontalpodautoscalers",)),
        # A target may be of any kind that has a scale.
        Grant(("get",), "*", ("*/scale",)),
        *(Grant(("patch",), group, (f"{plural}{status}",), acting=True) for group, plural, status in _TABLES),
        Grant(("patch",), "autoscaling", ("horizontalpodautoscalers",), acting=True),
        Grant(("update",), "*", ("*/scale",), acting=True),
        EVENTS,
    ),
)
